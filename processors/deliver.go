package processors

import "deliverystat/codecs"

// Deliver returns row as readers see it when its partition has the given
// progress. It returns false if the delivery is forgotten there, though its row
// is not yet deleted.
func (s *Settings) Deliver(id string, row *codecs.Row, progress *codecs.Progress) (codecs.Delivery, bool) {
	st := s.Standing(row, StreamOf(progress))
	if st.Forgotten {
		return codecs.Delivery{}, false
	}
	d := codecs.Delivery{
		ID:         id,
		Status:     st.Status,
		RawStatus:  row.RawStatus,
		OccurredAt: row.Winner.OccurredAt,
		Since:      Since(row),
		Timeline:   row.Timeline,
		Closed:     st.Closed,
		ClosedAt:   st.ClosedAt,
	}
	if st.Status != row.Winner.Status { // abandoned: no event said so
		d.Since = st.ClosedAt
	}
	for a := range row.Attributes {
		d.Attributes[a] = row.Attributes[a].Value
	}
	return d, true
}
