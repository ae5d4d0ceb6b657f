package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/IBM/sarama"

	"deliverystat/codecs"
	"deliverystat/processors"
)

// Letter is one dead letter. Its JSON is what list prints and replay reads.
type Letter struct {
	Time      time.Time     `json:"time"` // when it was refused
	Reason    codecs.Reason `json:"reason"`
	Detail    string        `json:"detail"` // one sentence
	Source    Source        `json:"source"`
	Partition int32         `json:"partition"` // of the dead letter
	Offset    int64         `json:"offset"`
	// Incomplete says what of the record was not kept since it was too large;
	// "" if it is whole. Only a whole record can be sent back.
	Incomplete string   `json:"incomplete,omitempty"`
	Key        Bytes    `json:"key"`
	Value      Bytes    `json:"value"`
	Headers    []Header `json:"headers"` // the record's own
}

// Source says which record was refused.
type Source struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"` // timestamp of the record
}

// Header is a header of a record.
type Header struct {
	Key   string `json:"key"`
	Value Bytes  `json:"value"`
}

// Bytes are written as a JSON string if they are UTF-8, and as {"base64":"…"}
// if not; nil is null.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	switch {
	case b == nil:
		return []byte("null"), nil
	case utf8.Valid(b):
		return plain(string(b))
	default:
		return json.Marshal(encoded{b})
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err == nil {
		*b = nil
		if s != nil {
			*b = Bytes(*s)
		}
		return nil
	}
	var e encoded
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Base64 == nil {
		return errors.New(`want a string, or {"base64":"…"} for bytes that are no UTF-8`)
	}
	*b = e.Base64
	return nil
}

type encoded struct {
	Base64 []byte `json:"base64"`
}

// plain is v as JSON in which <, > and & stand for themselves.
func plain(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// FromRecord reads a record of the dead letter topic. What its headers do not
// say is left zero.
func FromRecord(m *sarama.ConsumerMessage) *Letter {
	l := &Letter{Time: m.Timestamp.UTC(), Partition: m.Partition, Offset: m.Offset, Key: m.Key, Value: m.Value, Headers: []Header{}}
	var missing []string
	var length, sum string
	for _, h := range m.Headers {
		value := string(h.Value)
		number, _ := strconv.ParseInt(value, 10, 64) // the processors wrote a number, or it is 0
		switch name := string(h.Key); name {
		case processors.HeaderTopic:
			l.Source.Topic = value
		case processors.HeaderPartition:
			l.Source.Partition = int32(number)
		case processors.HeaderOffset:
			l.Source.Offset = number
		case processors.HeaderTimestamp:
			l.Source.Time = time.UnixMilli(number).UTC()
		case processors.HeaderReason:
			l.Reason = codecs.Reason(value)
		case processors.HeaderMessage:
			l.Detail = value
		case processors.HeaderValueLength:
			length = value
		case processors.HeaderValueHash:
			sum = value
		case processors.HeaderKeyLength:
			missing = append(missing, fmt.Sprintf("the key had %s bytes, of which %d are here", value, len(m.Key)))
		case processors.HeaderHeadersDropped:
			missing = append(missing, "its headers are not here")
		case processors.HeaderAcceptLate: // was for that one time
		default:
			l.Headers = append(l.Headers, Header{name, h.Value})
		}
	}
	if length != "" {
		missing = append(missing, fmt.Sprintf("the value had %s bytes, of which %d are here (SHA-256 %s)", length, len(m.Value), sum))
	}
	l.Incomplete = strings.Join(missing, "; ")
	return l
}

// message is l as it is sent to topic: the record that was refused. acceptLate
// marks it to be applied even if it is late.
func (l *Letter) message(topic string, acceptLate bool) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(l.Key)}
	if l.Value != nil {
		m.Value = sarama.ByteEncoder(l.Value)
	}
	for _, h := range l.Headers {
		if h.Key != processors.HeaderAcceptLate {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
	}
	if acceptLate {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(processors.HeaderAcceptLate), Value: []byte("true")})
	}
	return m
}

// Parse reads dead letters as Letter's JSON, one after the other. It reads all
// before it returns any, so that a fault in the last one sends none of them.
func Parse(r io.Reader) ([]*Letter, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var letters []*Letter
	for {
		var l Letter
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return letters, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading dead letter %d: %w", len(letters)+1, err)
		}
		letters = append(letters, &l)
	}
}
