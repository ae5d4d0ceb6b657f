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

	// Check says that an audit begins: Full, at a position that was told before, so
	// that it changes nothing unless the table is wrong.
	Check bool
	// Audited is when the last recount of the partition's rows ended, None if there
	// is nothing new to say; Drift is what it found.
	Audited int64
	Drift   []StatusCount
}

// Audit is the result of the last audit of one source partition. A difference has
// for each status that of the scope where it is greatest.
type Audit struct {
	At    int64         // when its recount ended, Unix nanoseconds; None if there was none
	Rows  []StatusCount // recounted rows minus running counts, where they differ
	Table []StatusCount // running counts minus those of the table, where they differ
}
