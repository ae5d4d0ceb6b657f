package codecs_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
)

func TestPositionText(t *testing.T) {
	for text, next := range map[string][]int64{
		"0:1042,1:998":          {1042, 998},
		"0:0":                   {0},
		"2:7":                   {-1, -1, 7},
		"1:9223372036854775807": {-1, math.MaxInt64},
		"0:1,3:4":               {1, -1, -1, 4},
	} {
		p, err := codecs.ParsePosition(text, 0)
		require.NoError(t, err, text)
		require.Equal(t, next, p.Next, text)
		require.Equal(t, text, p.String())
	}
	p, err := codecs.ParsePosition("3:17,1:2", 5)
	require.NoError(t, err)
	require.Equal(t, []int64{-1, 2, -1, 17, -1}, p.Next)
	require.Equal(t, "1:2,3:17", p.String())
	require.Empty(t, codecs.Position{Next: []int64{-1, -1}}.String())
}

func TestMalformedPositions(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "position is empty",
		"0":                     `reading offset of "0": invalid syntax`,
		":":                     `reading partition of ":": invalid syntax`,
		"0:":                    `reading offset of "0:": invalid syntax`,
		"0:-1":                  `reading offset of "0:-1": invalid syntax`,
		"0:+1":                  `reading offset of "0:+1": invalid syntax`,
		"0:1_0":                 `reading offset of "0:1_0": invalid syntax`,
		"0:0x1":                 `reading offset of "0:0x1": invalid syntax`,
		"0:1:2":                 `reading offset of "0:1:2": invalid syntax`,
		"0:1,":                  `reading partition of "": invalid syntax`,
		"0:1, 1:2":              `reading partition of " 1:2": invalid syntax`,
		"-1:1":                  `reading partition of "-1:1": invalid syntax`,
		"0:9223372036854775808": `reading offset of "0:9223372036854775808": value out of range`,
		"2147483648:1":          `reading partition of "2147483648:1": value out of range`,
		"0:1,0:2":               "partition 0 is named twice",
		"0:0,0:0":               "partition 0 is named twice",
		"4:1":                   "partition 4 does not exist",
	} {
		_, err := codecs.ParsePosition(text, 4)
		require.EqualError(t, err, want, text)
	}
	_, err := codecs.ParsePosition("2147483647:1", 0)
	require.EqualError(t, err, "partition 2147483647 does not exist")
}

func TestReaches(t *testing.T) {
	p := codecs.Position{TopicID: "t", Next: []int64{5, -1, 0}}
	for _, c := range []struct {
		q    codecs.Position
		want bool
	}{
		{codecs.Position{}, true},
		{p, true},
		{codecs.Position{Next: []int64{5}}, true},
		{codecs.Position{Next: []int64{4, -1, 0, -1}}, true},
		{codecs.Position{Next: []int64{6}}, false},
		{codecs.Position{Next: []int64{-1, 0}}, false},
		{codecs.Position{Next: []int64{-1, -1, 1}}, false},
		{codecs.Position{Next: []int64{-1, -1, -1, 0}}, false},
		{codecs.Position{TopicID: "t", Next: []int64{1}}, true},
		{codecs.Position{TopicID: "u", Next: []int64{1}}, false},
	} {
		require.Equal(t, c.want, p.Reaches(c.q), "%v", c.q)
	}
}
