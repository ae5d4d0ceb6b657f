package codecs

// StatusCount is the number of live or closed deliveries in one status.
type StatusCount struct {
	Status string
	Live   int64
	Closed int64
}

// ScopeCounts are the absolute counts of one scope: "" is all deliveries,
// "region=seoul" those with that value of a dimension.
type ScopeCounts struct {
	Scope  string
	Counts []StatusCount // statuses with a count other than 0, by name
}

// Tally is what the owner of one source partition tells the second stage at
// the end of an epoch: absolute values, never differences, so that repeats do
// no harm.
type Tally struct {
	Partition    int32
	TopicID      string // of the input topic
	Full         bool   // replaces everything known of the partition
	Part, Parts  int32  // a tally too large for one record comes in parts; 0 of 1
	Position     int64
	Clock        int64
	Horizon      int64
	SettingsHash uint64
	Scopes       []ScopeCounts // those that changed, or all if Full
}
