package topics_test

import (
	"context"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"deliverystat/cmd/deliverystat/internal/topics"
)

// spreading is a cluster in which news of topics spread slowly: the broker that
// tells of topics learns of them after some questions, the one that tells of
// settings after some more. Negative: never.
type spreading struct {
	topics.Admin // not used

	untilTopics, untilSettings int
}

func (s *spreading) DescribeTopics(names []string) ([]*sarama.TopicMetadata, error) {
	known := s.untilTopics == 0
	if !known {
		s.untilTopics--
	}
	described := make([]*sarama.TopicMetadata, len(names))
	for i, name := range names {
		described[i] = &sarama.TopicMetadata{Name: name}
		if !known {
			described[i].Err = sarama.ErrUnknownTopicOrPartition
		}
	}
	return described, nil
}

func (s *spreading) DescribeConfig(sarama.ConfigResource) ([]sarama.ConfigEntry, error) {
	if s.untilSettings == 0 {
		return nil, nil
	}
	s.untilSettings--
	return nil, &sarama.DescribeConfigError{Err: sarama.ErrUnknownTopicOrPartition}
}

func TestTopicsHaveAppearedWhenEveryBrokerTellsOfThem(t *testing.T) {
	specs, _ := asCreated()
	cluster := &spreading{untilTopics: 2, untilSettings: 3}

	require.NoError(t, topics.Appear(t.Context(), cluster, specs))

	require.Equal(t, spreading{}, *cluster, "it was asked until it knew")
}

func TestTopicsThatDoNotAppearAreNotWaitedForForEver(t *testing.T) {
	specs, _ := asCreated()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := topics.Appear(ctx, &spreading{untilSettings: -1}, specs)

	require.ErrorIs(t, err, context.Canceled)
}
