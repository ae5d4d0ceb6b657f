package codecs

// ProgressKey is the reserved key of the progress row in each table partition.
// Its control character keeps it apart from every valid delivery ID, and makes
// it the first key in key order.
const ProgressKey = "\x00progress"

// Setting is one setting that changes what rows and counts mean, by name and
// value. Progress rows keep them so that a replica with others is found out.
type Setting struct{ Name, Value string }

// Progress is the progress row of one partition of latest-delivery: what the
// rows before it in the log reflect.
type Progress struct {
	TopicID     string // of the input topic, as Kafka's UUID in hex
	Next        int64  // next offset to consume
	Position    int64  // greatest Next ever reflected within TopicID
	Clock       int64  // greatest event time of any event not refused; None
	Horizon     int64  // greatest order time forgotten; None
	FirstRecord int64  // record timestamp of the first record read, Unix nanoseconds; None
	LastRecord  int64  // greatest record timestamp read; None
	Settings    []Setting
}

// PartitionCounts is what the second stage knows of one source partition.
type PartitionCounts struct {
	Partition    int32
	TopicID      string
	Position     int64
	Clock        int64
	Horizon      int64
	SettingsHash uint64
	Full         bool // a full tally arrived since the last gap
	Audit        Audit
}

// CountsProgress is the progress row of the table count-per-status.
type CountsProgress struct {
	TopicID    string // of the tally topic
	Next       int64  // next tally offset to consume
	Partitions []PartitionCounts
}
