package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"deliverystat/cmd/deliverystat/internal/access"
	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/exit"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/cmd/deliverystat/internal/topics"
)

// prepare waits for Kafka and checks that the service can work with it. It
// returns the number of partitions of the input. Faults of Kafka are waited
// out; an error is about the topics, or that of ctx.
func (s *Service) prepare(ctx context.Context) (partitions int32, err error) {
	const pause = time.Second
	for {
		partitions, err = s.look(ctx)
		if err == nil || ctx.Err() != nil || exit.Code(err) == exit.Usage {
			return partitions, err
		}
		s.log.Warn("looking at the topics again soon", "err", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
	}
}

func (s *Service) look(ctx context.Context) (partitions int32, err error) {
	cluster, err := kafka.Await(ctx, s.o.Client, s.log)
	if err != nil {
		return 0, err
	}
	defer cluster.Close()
	if err := s.checkAccess(cluster); err != nil {
		return 0, err
	}
	window := topics.Window{Lateness: s.settings.Lateness, AbandonAfter: s.settings.AbandonAfter}
	specs := topics.WithSources(topics.Specs(s.topics, window, 3), s.o.Names())
	if !s.o.Has(config.RoleProcessors) {
		specs = topics.ReadOnly(specs)
	}
	existing, err := topics.Describe(cluster.Admin, specs)
	if err != nil {
		return 0, err
	}
	if err := s.judge(topics.Inspect(specs, existing, window)); err != nil {
		return 0, exit.With(exit.Usage, err)
	}
	partitions = existing[s.topics.Events].Partitions
	if s.o.Has(config.RoleProcessors) {
		err = s.checkKeys(ctx, cluster, partitions)
	}
	if err == nil {
		err = s.checkMeaning(ctx, cluster, partitions)
	}
	return partitions, err
}

// checkAccess names all that the cluster does not allow us.
func (s *Service) checkAccess(cluster *kafka.Cluster) error {
	err := access.Check(cluster.Client, access.Required(s.o.Deployment()))
	if missing := (*access.MissingError)(nil); errors.As(err, &missing) {
		return exit.With(exit.Usage, fmt.Errorf("%w; deliverystat topics acls prints the lines that grant it", missing))
	}
	return err
}

// judge logs what is only worth knowing, and returns the rest as one error with
// a way out.
func (s *Service) judge(findings []topics.Finding) error {
	var faults []string
	missing, unsafe := false, false
	for _, f := range findings {
		switch {
		case f.Weight == topics.Warning:
			s.log.Warn("topic is not as it should be, going on", "topic", f.Topic, "finding", f.Text)
			continue
		case f.Weight == topics.Unsafe && s.o.AllowUnsafe:
			s.log.Info("unsafe topic accepted", "topic", f.Topic, "finding", f.Text)
			continue
		case f.Weight == topics.Unsafe:
			unsafe = true
		}
		missing = missing || f.Missing
		faults = append(faults, f.Text)
	}
	if len(faults) == 0 {
		return nil
	}
	create := topics.CreateCommand(s.o.Client.Brokers, s.o.TopicPrefix, s.o.EventsTopic)
	advice := "mend their settings, or delete them while nothing runs and create them by: " + create
	switch {
	case missing:
		advice = "create what is missing by: " + create
	case unsafe:
		advice += " (--allow-unsafe accepts what is unsafe, for development and tests)"
	}
	return fmt.Errorf("topics are not as they must be: %s; %s", strings.Join(faults, "; "), advice)
}

// checkKeys refuses a first start on an input whose keys lie elsewhere than the
// key hash says: every record would be a dead letter.
func (s *Service) checkKeys(ctx context.Context, cluster *kafka.Cluster, partitions int32) error {
	first, err := s.firstStart(cluster, partitions)
	if err != nil || !first || partitions == 1 {
		return err
	}
	keys, err := topics.SampleKeys(ctx, cluster.Client, s.topics.Events, partitions)
	if err != nil {
		return err
	}
	placement := topics.Place(keys, partitions)
	contradicts, better := placement.Contradicts(s.o.Hasher())
	if !contradicts {
		return nil
	}
	advice := "no known hash puts them there: republish them by delivery ID with --sources=" + s.topics.Events + " and another --events-topic"
	if better != "" {
		advice = "--key-partitioner=" + string(better) + " would match"
	}
	return exit.With(exit.Usage, fmt.Errorf("keys of topic %s do not lie where --key-partitioner=%s puts them: %d of %d keys looked at lie elsewhere; %s",
		s.topics.Events, s.o.Hasher(), placement.Keys-placement.Right[s.o.Hasher()], placement.Keys, advice))
}

// firstStart reports whether nothing was ever processed: no offset is committed
// and the table has no rows.
func (s *Service) firstStart(cluster *kafka.Cluster, partitions int32) (bool, error) {
	ids := make([]int32, partitions)
	for p := range ids {
		ids[p] = int32(p)
	}
	committed, err := cluster.Admin.ListConsumerGroupOffsets(s.topics.DeliveryGroup, map[string][]int32{s.topics.Events: ids})
	switch {
	case errors.Is(err, sarama.ErrGroupIDNotFound):
	case err != nil:
		return false, fmt.Errorf("asking for the offsets of group %s: %w", s.topics.DeliveryGroup, err)
	default:
		for _, block := range committed.Blocks[s.topics.Events] {
			if block.Offset >= 0 {
				return false, nil
			}
		}
	}
	var errs []error
	for p := range ids {
		oldest, err := cluster.Client.GetOffset(s.topics.DeliveryTable, ids[p], sarama.OffsetOldest)
		errs = append(errs, err)
		newest, err := cluster.Client.GetOffset(s.topics.DeliveryTable, ids[p], sarama.OffsetNewest)
		errs = append(errs, err)
		if newest > oldest {
			return false, errors.Join(errs...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("asking for the ends of %s: %w", s.topics.DeliveryTable, err)
	}
	return true, nil
}
