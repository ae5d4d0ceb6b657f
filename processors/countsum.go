package processors

import (
	"cmp"
	"slices"

	"deliverystat/codecs"
)

// Counts of one scope are a list ordered by status name, without statuses that
// count nothing. Such a list is never changed: a sum is a new list.

// normalCounts returns counts in that form.
func normalCounts(counts []codecs.StatusCount) []codecs.StatusCount {
	ordered := slices.IsSortedFunc(counts, func(a, b codecs.StatusCount) int { return cmp.Compare(a.Status, b.Status) })
	if ordered && !slices.ContainsFunc(counts, countsNothing) {
		return counts
	}
	counts = slices.DeleteFunc(slices.Clone(counts), countsNothing)
	slices.SortFunc(counts, func(a, b codecs.StatusCount) int { return cmp.Compare(a.Status, b.Status) })
	return counts
}

func countsNothing(c codecs.StatusCount) bool { return c.Live == 0 && c.Closed == 0 }

// addCounts returns a + sign × b.
func addCounts(a, b []codecs.StatusCount, sign int64) []codecs.StatusCount {
	sum := make([]codecs.StatusCount, 0, max(len(a), len(b)))
	for len(a) > 0 || len(b) > 0 {
		var c codecs.StatusCount
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Status < b[0].Status:
			c, a = a[0], a[1:]
		case len(a) == 0 || b[0].Status < a[0].Status:
			c, b = codecs.StatusCount{Status: b[0].Status, Live: sign * b[0].Live, Closed: sign * b[0].Closed}, b[1:]
		default:
			c = codecs.StatusCount{
				Status: a[0].Status,
				Live:   a[0].Live + sign*b[0].Live,
				Closed: a[0].Closed + sign*b[0].Closed,
			}
			a, b = a[1:], b[1:]
		}
		if !countsNothing(c) {
			sum = append(sum, c)
		}
	}
	return sum
}

// negative reports whether a count is below 0, which is a fault of ours.
func negative(counts []codecs.StatusCount) bool {
	return slices.ContainsFunc(counts, func(c codecs.StatusCount) bool { return c.Live < 0 || c.Closed < 0 })
}
