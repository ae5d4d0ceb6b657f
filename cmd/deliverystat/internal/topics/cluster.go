package topics

import (
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"deliverystat/cmd/deliverystat/internal/exit"
)

// Admin is what this package needs of sarama.ClusterAdmin.
type Admin interface {
	DescribeTopics(topics []string) ([]*sarama.TopicMetadata, error)
	DescribeConfig(resource sarama.ConfigResource) ([]sarama.ConfigEntry, error)
	CreateTopic(topic string, detail *sarama.TopicDetail, validateOnly bool) error
}

// Describe asks the cluster for those of the topics that exist. One that is not
// needed may be hidden from us.
func Describe(admin Admin, specs []Spec) (map[string]Topic, error) {
	names := make([]string, 0, len(specs))
	needed := map[string]bool{}
	for _, s := range specs {
		names = append(names, s.Name)
		needed[s.Name] = s.Needed
	}
	described, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("describing topics: %w", err)
	}
	existing := map[string]Topic{}
	for _, d := range described {
		switch {
		case errors.Is(d.Err, sarama.ErrUnknownTopicOrPartition):
			continue
		case errors.Is(d.Err, sarama.ErrTopicAuthorizationFailed) && !needed[d.Name]:
			continue
		case !errors.Is(d.Err, sarama.ErrNoError):
			return nil, fmt.Errorf("describing topic %s: %w", d.Name, d.Err)
		}
		topic := Topic{Partitions: int32(len(d.Partitions)), Settings: map[string]string{}}
		for i, p := range d.Partitions {
			if factor := int16(len(p.Replicas)); i == 0 || factor < topic.ReplicationFactor {
				topic.ReplicationFactor = factor
			}
		}
		entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: d.Name})
		if err != nil {
			return nil, fmt.Errorf("describing settings of topic %s: %w", d.Name, err)
		}
		for _, e := range entries {
			topic.Settings[e.Name] = e.Value
		}
		existing[d.Name] = topic
	}
	return existing, nil
}

// Missing returns those of the topics that do not exist.
func Missing(admin Admin, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	described, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("describing topics: %w", err)
	}
	var missing []string
	for _, d := range described {
		switch {
		case errors.Is(d.Err, sarama.ErrUnknownTopicOrPartition):
			missing = append(missing, d.Name)
		case !errors.Is(d.Err, sarama.ErrNoError):
			return nil, fmt.Errorf("describing topic %s: %w", d.Name, d.Err)
		}
	}
	return missing, nil
}

// Require returns an error that names the topics that do not exist.
func Require(admin Admin, names ...string) error {
	missing, err := Missing(admin, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	for i, name := range missing {
		missing[i] = "topic " + name + " does not exist"
	}
	return exit.With(exit.Usage, errors.New(strings.Join(missing, "; ")))
}

// Create makes those of the topics that do not exist, the first with the given
// number of partitions unless the input exists, and returns their names.
func Create(admin Admin, specs []Spec, existing map[string]Topic, partitions int32, factor int16) (created []string, err error) {
	if input, ok := existing[specs[0].Name]; ok {
		partitions = input.Partitions
	}
	for _, spec := range specs {
		if _, ok := existing[spec.Name]; ok {
			continue
		}
		n := spec.Partitions
		if n == 0 {
			n = partitions
		}
		if err := create(admin, spec, n, factor); err != nil {
			return created, err
		}
		created = append(created, spec.Name)
	}
	return created, nil
}

func create(admin Admin, spec Spec, partitions int32, factor int16) error {
	err := admin.CreateTopic(spec.Name, detail(spec.Settings, partitions, factor), false)
	if errors.Is(err, sarama.ErrInvalidConfig) && spec.Kind == Input {
		// Kafka before 3.6 can not bound CreateTime; its own time is bounded.
		settings := map[string]string{}
		for name, value := range spec.Settings {
			if name != timestampAfter {
				settings[name] = value
			}
		}
		settings[timestampType] = "LogAppendTime"
		err = admin.CreateTopic(spec.Name, detail(settings, partitions, factor), false)
	}
	switch {
	case err == nil, errors.Is(err, sarama.ErrTopicAlreadyExists): // made by another meanwhile
		return nil
	case errors.Is(err, sarama.ErrInvalidReplicationFactor):
		return fmt.Errorf("creating topic %s with --replication-factor=%d: more than there are brokers", spec.Name, factor)
	default:
		return fmt.Errorf("creating topic %s: %w", spec.Name, err)
	}
}

func detail(settings map[string]string, partitions int32, factor int16) *sarama.TopicDetail {
	d := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: factor, ConfigEntries: map[string]*string{}}
	for name, value := range settings {
		d.ConfigEntries[name] = &value
	}
	return d
}

// CreateCommand returns the command line that makes the topics of a deployment.
func CreateCommand(brokers []string, prefix, events string) string {
	line := "deliverystat topics create --kafka-brokers=" + strings.Join(brokers, ",")
	if prefix != "" {
		line += " --topic-prefix=" + prefix
	}
	if events != "" {
		line += " --events-topic=" + events
	}
	return line
}
