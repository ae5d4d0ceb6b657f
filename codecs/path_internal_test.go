package codecs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestPathsPickElementsFromBothEnds(t *testing.T) {
	for at, want := range map[string]string{
		"a.0": "x", "a.1": "y", "a.2": "z", "a.3": "", "a.-1": "z", "a.-3": "x", "a.-4": "", "a.+1": "",
		"a": `["x","y","z"]`, "a.b": "", "o.0": "zero", "o.-1": "minus", "o.1": "", "n.0.0": "deep", "s.0": "", "e.0": "", "e.-1": "",
		`o.d\.t`: "dot", `o.b\\s`: "backslash", `o.\#`: "hash", "o.키": "key",
	} {
		p, err := parsePath(at)
		require.NoError(t, err)
		value := gjson.Parse(`{"a":["x","y","z"],"o":{"0":"zero","-1":"minus","d.t":"dot","b\\s":"backslash","#":"hash","\ud0a4":"key"},"n":[["deep"]],"s":"x","e":[]}`)
		require.Equal(t, want, p.find(value).text, at)
		again, err := parsePath(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
	}
}
