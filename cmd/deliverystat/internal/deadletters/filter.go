package deadletters

import (
	"slices"
	"time"

	"deliverystat/codecs"
)

// Filter chooses dead letters. The zero value but for Partition chooses all.
type Filter struct {
	Reasons    []codecs.Reason // one of these; none for any
	Key        string          // this record key; "" for any
	DeliveryID string          // this ID is the record key, or the value names it; "" for any
	Since      time.Time       // refused then or later
	Partition  int32           // of the input; negative for any
	Decoder    *codecs.Decoder // finds the ID that a value names
}

// Match reports whether f chooses l.
func (f *Filter) Match(l *Letter) bool {
	return (len(f.Reasons) == 0 || slices.Contains(f.Reasons, l.Reason)) &&
		(f.Key == "" || string(l.Key) == f.Key) &&
		(f.DeliveryID == "" || f.about(l)) &&
		!l.Time.Before(f.Since) &&
		(f.Partition < 0 || l.Source.Partition == f.Partition)
}

func (f *Filter) about(l *Letter) bool {
	if string(l.Key) == f.DeliveryID {
		return true
	}
	id, ok := f.Decoder.DeliveryID(l.Value)
	return ok && id == f.DeliveryID
}
