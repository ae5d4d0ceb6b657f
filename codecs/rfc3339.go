package codecs

import "time"

// The years that an int64 of nanoseconds holds wholly.
const (
	firstYear = 1678
	lastYear  = 2261
)

// parseRFC3339 reads a time with zone as Unix nanoseconds; digits beyond those
// are cut off. Package time also takes what RFC 3339 does not allow (an hour of
// one digit, a comma, a zone of 30 hours), and no lower-case t and z.
func parseRFC3339(s string) (int64, bool) {
	if len(s) < len("2006-01-02T15:04:05Z") ||
		s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	century, c := twoDigits(s[0:2])
	yy, y := twoDigits(s[2:4])
	month, m := twoDigits(s[5:7])
	day, d := twoDigits(s[8:10])
	hour, h := twoDigits(s[11:13])
	minute, n := twoDigits(s[14:16])
	second, sec := twoDigits(s[17:19])
	if !(c && y && m && d && h && n && sec) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	nanos, rest, ok := fraction(s[19:])
	if !ok {
		return 0, false
	}
	offset, ok := zone(rest)
	year := 100*century + yy
	if !ok || year < firstYear || year > lastYear {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	if t.Month() != time.Month(month) {
		return 0, false // there is no such day or month: Date went on to another
	}
	return t.UnixNano() - offset, true
}

// fraction reads ".123", if s begins with such, as nanoseconds.
func fraction(s string) (nanos int, rest string, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	unit := int(time.Second)
	i := 1
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		unit /= 10
		nanos += unit * int(s[i]-'0')
	}
	return nanos, s[i:], i > 1
}

// zone reads "Z" or "+09:00" as nanoseconds east of UTC.
func zone(s string) (offset int64, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+09:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, h := twoDigits(s[1:3])
	minutes, m := twoDigits(s[4:6])
	if !h || !m || hours > 23 || minutes > 59 {
		return 0, false
	}
	offset = int64(hours)*int64(time.Hour) + int64(minutes)*int64(time.Minute)
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}

func twoDigits(s string) (int, bool) {
	tens, ones := s[0]-'0', s[1]-'0'
	return 10*int(tens) + int(ones), tens <= 9 && ones <= 9
}
