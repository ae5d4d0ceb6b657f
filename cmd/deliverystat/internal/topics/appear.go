package topics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// appearPause lies between two looks at the cluster.
const appearPause = 50 * time.Millisecond

// Appear waits until the cluster tells of all the topics: Kafka acknowledges a
// new topic before its brokers know it, and whoever starts right afterwards
// would be told that there is none.
func Appear(ctx context.Context, admin Admin, specs []Spec) error {
	tick := time.NewTicker(appearPause)
	defer tick.Stop()
	for {
		existing, err := Describe(admin, specs)
		switch {
		case errors.Is(err, sarama.ErrUnknownTopicOrPartition): // one broker knows the topic, the next one does not yet
		case err != nil:
			return err
		case len(existing) == len(specs):
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d topics to appear on all brokers: %w", len(specs), ctx.Err())
		case <-tick.C:
		}
	}
}
