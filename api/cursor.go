package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"deliverystat/codecs"
)

// A cursor is the place of the last delivery of a page, after a sum of it and of
// what was asked for. So it needs no memory on the server: it survives restarts
// and works on every replica.
const (
	cursorVersion = 1
	cursorSum     = 8 // bytes
)

// detailCursor says what a cursor is.
const detailCursor = "must be a next_cursor of an answer to the same question"

// sum hashes a place, and what decides which deliveries a list has and their
// order. It finds mistakes, not forgery: a place is no secret.
func (q *query) sum(place []byte) [cursorSum]byte {
	status := ""
	if q.status != nil {
		status = fmt.Sprint(*q.status)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q", status, q.dimension, q.value, q.orderID, q.olderThan, place))
	return [cursorSum]byte(sum[:])
}

// nextCursor makes the cursor for what follows key.
func (q *query) nextCursor(key *codecs.LiveKey) string {
	place := binary.AppendVarint(nil, key.Since)
	place = binary.AppendUvarint(place, uint64(key.Partition))
	place = append(place, key.ID...)
	sum := q.sum(place)
	return base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{cursorVersion}, sum[:], place))
}

// readCursor reads what nextCursor made for the same question; nil without a
// cursor.
func (q *query) readCursor() (*codecs.LiveKey, error) {
	if q.cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.cursor)
	if err != nil || len(b) < 1+cursorSum || b[0] != cursorVersion {
		return nil, errors.New(detailCursor)
	}
	place := b[1+cursorSum:]
	since, n := binary.Varint(place)
	partition, m := binary.Uvarint(place[max(n, 0):])
	if n <= 0 || m <= 0 || partition > math.MaxInt32 || [cursorSum]byte(b[1:]) != q.sum(place) {
		return nil, errors.New(detailCursor)
	}
	return &codecs.LiveKey{Since: since, Partition: int32(partition), ID: string(place[n+m:])}, nil
}

// live makes q what it asks of the deliveries, at a time.
func (q *query) live(now time.Time, after *codecs.LiveKey) *codecs.LiveQuery {
	return &codecs.LiveQuery{
		Status: q.status, Dimension: q.dimension, Value: q.value, OrderID: q.orderID,
		OldestFirst: q.olderThan >= 0, Before: now.Add(-q.olderThan).UnixNano(),
		After: after, Limit: q.limit,
	}
}
