package codecs

// Counts is the content of the table count-per-status at one position. It is
// immutable.
type Counts struct {
	Position  Position
	EventTime int64 // newest event time reflected, Unix nanoseconds; None
	Complete  bool  // every partition has told everything since its last gap
	Uniform   bool  // all partitions have the same settings: groups may be given
	All       ScopeCounts
	Groups    map[string]ScopeCounts // by scope
	Audited   int64                  // when the oldest of the partitions' last audits ended, Unix nanoseconds; None
	Drift     map[string]int64       // what those found, by status: recounted minus counted; without zeros
}

// Delivery is a row as readers see it at one position of its partition.
type Delivery struct {
	ID         string
	Status     Status // ABANDONED included
	RawStatus  string
	OccurredAt int64 // event time of the winner
	Since      int64 // since when in this status
	Timeline   []StatusTimes
	Attributes [NumAttributes]string
	Closed     bool
	ClosedAt   int64 // None while live
}
