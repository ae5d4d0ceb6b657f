package config

import (
	"net"
	"os"
	"strings"
	"time"

	"deliverystat/codecs"
	"deliverystat/processors"
	"deliverystat/processors/exactlyonce"
)

// Naming names the topics and groups of one deployment.
type Naming struct {
	TopicPrefix    string `help:"Put before the default names of topics, groups and transactional IDs; never before a name given by flag." placeholder:"PREFIX"`
	EventsTopic    string `help:"Input topic (default delivery-events)." placeholder:"TOPIC"`
	KeyPartitioner string `help:"Key hash of the producers of the input: murmur2 (Java, Debezium), crc32 (librdkafka), fnv1a (sarama)." default:"murmur2" oneof:"murmur2,crc32,fnv1a"`
}

// Check implements [Checker].
func (n *Naming) Check(problems *Problems) {
	if !topicName(n.TopicPrefix + "x") {
		problems.Add("topic-prefix", "want letters, digits, dots, hyphens and underscores, got %q", n.TopicPrefix)
	}
	if n.EventsTopic != "" && !topicName(n.EventsTopic) {
		problems.Add("events-topic", "want letters, digits, dots, hyphens and underscores, got %q", n.EventsTopic)
	}
}

func topicName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return s != "" && len(s) <= 249 && s != "." && s != ".." && strings.Trim(s, allowed) == ""
}

// Topics returns the names.
func (n *Naming) Topics() processors.Topics {
	return processors.NewTopics(n.TopicPrefix, n.EventsTopic)
}

// Hasher returns the key hash of the input.
func (n *Naming) Hasher() exactlyonce.Hasher { return exactlyonce.Hasher(n.KeyPartitioner) }

// Window are the settings that say how long a delivery is remembered.
type Window struct {
	AllowedLateness time.Duration `help:"How much later than its delivery's end an event may come, in event time; closed deliveries stay readable so long." default:"24h"`
	AbandonAfter    time.Duration `help:"A live delivery without an event for so long, in event time, counts as ABANDONED; 0 for never." default:"168h"`
}

// Check implements [Checker].
func (w *Window) Check(problems *Problems) {
	if w.AllowedLateness <= 0 {
		problems.Add("allowed-lateness", "%v is not positive", w.AllowedLateness)
	}
	if w.AbandonAfter < 0 {
		problems.Add("abandon-after", "%v is negative", w.AbandonAfter)
	}
}

// Safety is the way out of the checks that protect data.
type Safety struct {
	AllowUnsafe bool `help:"Accept settings and topics that may lose data or suit only development and tests."`
}

// Meaning are the settings that decide what an event means.
type Meaning struct {
	Window
	OrderBy      string        `help:"What orders the events of one delivery: event-time or sequence." default:"event-time" oneof:"event-time,sequence"`
	MaxFuture    time.Duration `help:"How far the time of an event may lie after its record's." default:"10m"`
	TerminalSkew time.Duration `help:"Added to the time of events with a terminal status, for sources whose clocks differ." default:"0s"`
	Dimensions   []string      `help:"Attributes to count by as well: region, service, store_id." placeholder:"NAME,…"`
}

// CheckUnless notes what is wrong; without allowUnsafe also what suits only
// tests.
func (m *Meaning) CheckUnless(allowUnsafe bool, problems *Problems) {
	settings := m.Settings(codecs.BuiltinLifecycle())
	if err := settings.Validate(allowUnsafe); err != nil {
		for line := range strings.Lines(err.Error()) {
			flag, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			problems.Add(flag, "%s", text)
		}
	}
	for _, name := range m.Dimensions {
		if a, ok := codecs.ParseAttribute(name); !ok || a == codecs.OrderID {
			problems.Add("dimensions", "%q is not one of region, service, store_id", name)
		}
	}
}

// Settings returns what the processors are configured with. Call it after
// Check: a dimension that is none is left out.
func (m *Meaning) Settings(lifecycle *codecs.Lifecycle) *processors.Settings {
	dimensions, _ := processors.ParseDimensions(m.Dimensions) // Check has looked at it
	return &processors.Settings{
		Lifecycle:    lifecycle,
		OrderBy:      processors.Order(m.OrderBy),
		Lateness:     m.AllowedLateness,
		AbandonAfter: m.AbandonAfter,
		MaxFuture:    m.MaxFuture,
		TerminalSkew: m.TerminalSkew,
		Dimensions:   dimensions,
	}
}

func checkAddress(flag, address string, problems *Problems) {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		problems.Add(flag, "want host:port or :port, got %q", address)
	}
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "deliverystat"
	}
	return name
}
