package codecs

import (
	"strings"

	"github.com/tidwall/gjson"
)

// DeliveryID returns the delivery ID that a value names by itself, for whoever
// has values without keys and has to give them one. It returns false where the
// value is no event, or names none that is valid.
func (d *Decoder) DeliveryID(value []byte) (id string, ok bool) {
	text := textOf(value)
	if jsonFault(text) != "" {
		return "", false
	}
	f := fields{mapping: d.mapping}
	says, _ := f.read(text, d.in)
	if says != event || f.deliveryID.kind != gjson.String || !ValidID(f.deliveryID.text) {
		return "", false
	}
	return strings.Clone(f.deliveryID.text), true
}
