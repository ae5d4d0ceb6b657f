package codecs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxPartitions bounds what ParsePosition accepts where the number of
// partitions is not known, so that a hostile text can not claim much memory.
const maxPartitions = 100_000

// Position says which prefix of the input an answer reflects: the greatest
// next offset per partition. Next[p] < 0 means that nothing is known of p.
type Position struct {
	TopicID string
	Next    []int64
}

// Reflected says what a read of rows reflects.
type Reflected struct {
	Position
	// EventTime is the newest event time of any event in that prefix of the
	// input, of those that were not refused; None if there is none.
	EventTime int64
}

// String writes p as "0:1042,1:998", known partitions only.
func (p Position) String() string {
	b := make([]byte, 0, 12*len(p.Next))
	for partition, next := range p.Next {
		if next < 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(partition), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, next, 10)
	}
	return string(b)
}

// ParsePosition reads "3:17,4:2" for an input of n partitions (n = 0: any). A
// partition not named is -1. Empty texts, partitions that do not exist or are
// named twice, and anything but decimal digits are errors.
func ParsePosition(s string, n int) (Position, error) {
	if s == "" {
		return Position{}, errors.New("position is empty")
	}
	limit := n
	if n == 0 {
		limit = maxPartitions
	}
	p := Position{Next: unknownOffsets(nil, n)}
	for part := range strings.SplitSeq(s, ",") {
		left, right, _ := strings.Cut(part, ":")
		partition, err := parseDigits(left, 31)
		if err != nil {
			return Position{}, fmt.Errorf("reading partition of %q: %w", part, err)
		}
		next, err := parseDigits(right, 63)
		if err != nil {
			return Position{}, fmt.Errorf("reading offset of %q: %w", part, err)
		}
		if partition >= int64(limit) {
			return Position{}, fmt.Errorf("partition %d does not exist", partition)
		}
		p.Next = unknownOffsets(p.Next, int(partition)+1)
		if p.Next[partition] >= 0 {
			return Position{}, fmt.Errorf("partition %d is named twice", partition)
		}
		p.Next[partition] = next
	}
	return p, nil
}

// unknownOffsets extends next to n partitions.
func unknownOffsets(next []int64, n int) []int64 {
	for len(next) < n {
		next = append(next, -1)
	}
	return next
}

// parseDigits reads a number without sign of at most bits bits. Unlike
// strconv.ParseInt it takes no sign.
func parseDigits(s string, bits int) (int64, error) {
	v, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		if syntax, ok := errors.AsType[*strconv.NumError](err); ok {
			err = syntax.Err
		}
		return 0, err
	}
	return int64(v), nil
}

// Reaches reports whether p reflects at least q in every partition that q
// names. Positions in topics with different IDs do not reach each other; a
// position without an ID is compared by its offsets alone.
func (p Position) Reaches(q Position) bool {
	if p.TopicID != "" && q.TopicID != "" && p.TopicID != q.TopicID {
		return false
	}
	for partition, next := range q.Next {
		if next >= 0 && (partition >= len(p.Next) || p.Next[partition] < next) {
			return false
		}
	}
	return true
}
