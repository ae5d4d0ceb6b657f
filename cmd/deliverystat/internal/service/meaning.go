package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/cmd/deliverystat/internal/kafka"
	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// checkMeaning looks at what the table was written with, before this replica
// joins the group: a member can not decline a partition, and a reader with other
// settings would show rows in another standing. Other settings are refused; with
// --accept-new-meaning a processor waits until no other one is left.
func (s *Service) checkMeaning(ctx context.Context, cluster *kafka.Cluster, partitions int32) error {
	consumer, err := sarama.NewConsumerFromClient(cluster.Client)
	if err != nil {
		return fmt.Errorf("preparing to read %s: %w", s.topics.DeliveryTable, err)
	}
	defer func() { _ = consumer.Close() }() // only read from
	all := make([]*codecs.Progress, partitions)
	var group errgroup.Group
	for p := range partitions {
		group.Go(func() (err error) {
			all[p], err = s.lastProgress(ctx, cluster.Client, consumer, p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var settings *processors.SettingsError
	for _, progress := range all {
		if progress != nil && errors.As(s.settings.CheckSettings(progress.Settings), &settings) {
			break
		}
	}
	switch {
	case settings == nil:
		return nil
	case !s.o.AcceptNewMeaning:
		return s.explain(s.topics.DeliveryGroup, settings)
	case !s.o.Has(config.RoleProcessors):
		return nil
	}
	others, err := otherMembers(cluster.Admin, s.topics.DeliveryGroup, s.o.Name())
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("--accept-new-meaning needs all processors stopped, and group %s still has %s (a stopped one leaves after its session timeout); %w",
			s.topics.DeliveryGroup, strings.Join(others, ", "), settings)
	}
	return nil
}

// lastProgress reads the newest progress row of a partition of the table, nil
// if there is none. It is the last record of each epoch.
func (s *Service) lastProgress(ctx context.Context, client sarama.Client, consumer sarama.Consumer, partition int32) (*codecs.Progress, error) {
	table := s.topics.DeliveryTable
	failed := func(err error) error {
		return fmt.Errorf("reading the progress of %s/%d: %w", table, partition, err)
	}
	oldest, err := client.GetOffset(table, partition, sarama.OffsetOldest)
	if err != nil {
		return nil, failed(err)
	}
	newest, err := client.GetOffset(table, partition, sarama.OffsetNewest)
	if err != nil {
		return nil, failed(err)
	}
	end, err := exactlyonce.VisibleEnd(ctx, client, table, partition, oldest, newest)
	if err != nil {
		return nil, failed(err)
	}
	if end == oldest {
		return nil, nil //nolint:nilnil // nothing was written
	}
	records, err := consumer.ConsumePartition(table, partition, end-1)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = records.Close() }() // only read from
	// The end may have been asked for in the midst of an epoch that has been
	// committed since: its progress row comes behind. In a table of somebody
	// else there is none, which recovery says.
	patience := time.NewTimer(lastProgressTime)
	defer patience.Stop()
	for {
		select {
		case m := <-records.Messages():
			if string(m.Key) != codecs.ProgressKey {
				continue
			}
			progress, err := codecs.ReadProgress(m.Value)
			if err != nil {
				return nil, failed(err)
			}
			return progress, nil
		case err := <-records.Errors():
			return nil, failed(err)
		case <-patience.C:
			return nil, nil //nolint:nilnil // as above
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lastProgressTime is how long the rest of a committed epoch may take to come.
const lastProgressTime = 5 * time.Second

// otherMembers names the members of a group except self.
func otherMembers(admin sarama.ClusterAdmin, group, self string) ([]string, error) {
	found, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, fmt.Errorf("describing group %s: %w", group, err)
	}
	var others []string
	for _, g := range found {
		for _, m := range g.Members {
			name := m.ClientId
			if m.GroupInstanceId != nil {
				name = *m.GroupInstanceId
			}
			if name != self {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others)
	return others, nil
}
