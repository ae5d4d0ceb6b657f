package topics

import (
	"context"
	"fmt"
	"time"
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
		if err != nil {
			return err
		}
		if len(existing) == len(specs) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d of %d topics to appear: %w", len(specs)-len(existing), len(specs), ctx.Err())
		case <-tick.C:
		}
	}
}
