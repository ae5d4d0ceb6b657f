package codecs

// Status is one status of a [Lifecycle]: its rank, 0 for UNKNOWN. It is only
// meaningful together with its lifecycle; bytes carry the name instead.
type Status uint8

// Unknown is the live status of an event whose status name the lifecycle does
// not have. It has the lowest rank.
const Unknown Status = 0

// StatusInfo describes one status of a lifecycle.
type StatusInfo struct {
	Name     string            // canonical name, [A-Z][A-Z0-9_]*
	Terminal bool              // closes the delivery
	Aliases  []string          // other names that producers send
	Labels   map[string]string // display names by language ("ko", "en")
}
