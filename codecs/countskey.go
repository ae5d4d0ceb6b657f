package codecs

import (
	"math"
	"strconv"
	"strings"
)

// The first bytes of the keys of count-per-status.
const (
	contributionPrefix = "c/"
	totalPrefix        = "t/"
)

// ContributionKey is the key of what one source partition contributes to scope.
func ContributionKey(partition int32, scope string) string {
	return contributionPrefix + strconv.FormatInt(int64(partition), 10) + "/" + scope
}

// TotalKey is the key of the total of scope.
func TotalKey(scope string) string { return totalPrefix + scope }

// ParseCountsKey undoes ContributionKey (total false) and TotalKey (total true).
// A scope may contain slashes.
func ParseCountsKey(key string) (partition int32, scope string, total, ok bool) {
	if scope, ok = strings.CutPrefix(key, totalPrefix); ok {
		return 0, scope, true, true
	}
	rest, ok := strings.CutPrefix(key, contributionPrefix)
	if !ok {
		return 0, "", false, false
	}
	number, scope, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, "", false, false
	}
	n, err := parseDigits(number, 31)
	if err != nil || n > math.MaxInt32 || strconv.FormatInt(n, 10) != number {
		return 0, "", false, false
	}
	return int32(n), scope, false, true
}
