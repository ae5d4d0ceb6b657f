package api

import (
	"context"
	"time"

	"deliverystat/codecs"
)

// Counts is where the API reads the counts.
type Counts interface {
	// Snapshot returns the newest complete counts, or nil before the first
	// recovery. Successive snapshots of one replica never go back.
	Snapshot() *codecs.Counts
	// Wait returns the first snapshot that reaches p, at once if the newest
	// does; else the context's error. p has no topic ID.
	Wait(ctx context.Context, p codecs.Position) (*codecs.Counts, error)
}

// Deliveries is where the API reads rows.
type Deliveries interface {
	// Get returns the delivery, or found false if it is neither live nor closed
	// within the window. ready is false before the first recovery.
	// at is what the answer reflects: the position of the delivery's partition,
	// the others being -1, or of all partitions if it was not found. So
	// len(at.Next) is always the number of partitions.
	Get(id string) (d codecs.Delivery, at codecs.Reflected, found, ready bool)
	// List returns the live deliveries that q asks for, all as of one position
	// that names every partition. ready is false before the first recovery, and
	// if the context ends.
	List(ctx context.Context, q *codecs.LiveQuery) (page codecs.LivePage, ready bool)
	// Wait returns nil once Get and List reflect p, at once if it does already, even if
	// the context has ended; else the context's error.
	Wait(ctx context.Context, p codecs.Position) error
}

// Freshness says how current a position is.
type Freshness interface {
	// Of returns the lag of p in records and a proved bound of its age: an
	// answer at p reflects all that read-committed readers could see that long
	// ago. lag is negative if it is not known; known is false if no such time was
	// proved yet.
	Of(p codecs.Position) (lag int64, staleness time.Duration, known bool)
}
