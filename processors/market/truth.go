package market

// Truth is what the counts must be once every record of a market was applied,
// in the JSON that the command simulate writes.
type Truth struct {
	Counts    map[string]int `json:"counts"` // every live status
	Live      int            `json:"live"`
	Closed    map[string]int `json:"closed"` // every terminal status
	Events    int            `json:"events"` // records, malformed ones included
	Malformed int            `json:"malformed"`
}

// Truth returns the truth about the records that Next has returned so far.
func (m *Market) Truth() Truth {
	live, closed := m.model.Counts("")
	t := Truth{Counts: live, Closed: closed, Events: m.next, Malformed: m.produced.Malformed}
	for _, n := range live {
		t.Live += n
	}
	return t
}
