package processors

import (
	"github.com/lovoo/goka"

	"deliverystat/processors/exactlyonce"
)

// Topics names every topic and group of one deployment.
type Topics struct {
	Events        string // input
	DeliveryTable string // changelog of latest-delivery
	Tallies       string // one partition
	CountsTable   string // changelog of count-per-status, one partition
	DeadLetters   string
	Summaries     string
	Control       string
	DeliveryGroup string // consumer group of the first stage
	CountsGroup   string // consumer group of the second stage

	prefix string
}

// NewTopics returns the default names with prefix put before each; events, if
// not "", names the input as it is.
func NewTopics(prefix, events string) Topics {
	t := Topics{
		Events:        prefix + "delivery-events",
		DeliveryTable: prefix + "latest-delivery-table",
		Tallies:       prefix + "status-tallies",
		CountsTable:   prefix + "count-per-status-table",
		DeadLetters:   prefix + "delivery-events-dead-letter",
		Summaries:     prefix + "delivery-summaries",
		Control:       prefix + "deliverystat-control",
		DeliveryGroup: prefix + "latest-delivery",
		CountsGroup:   prefix + "count-per-status",
		prefix:        prefix,
	}
	if events != "" {
		t.Events = events
	}
	return t
}

// Outputs returns the topics that a deployment writes, the input left out.
func (t *Topics) Outputs() []string {
	return []string{t.DeliveryTable, t.Tallies, t.CountsTable, t.DeadLetters, t.Summaries, t.Control}
}

// NormalizeGroup is the consumer group that republishes a source.
func (t *Topics) NormalizeGroup(source string) string { return t.prefix + "normalize-" + source }

// latestDelivery is the group graph of the first stage.
func (t *Topics) latestDelivery(a *exactlyonce.Attempt) *goka.GroupGraph {
	raw := exactlyonce.RawCodec{}
	return goka.DefineGroup(goka.Group(t.DeliveryGroup),
		exactlyonce.Consume(a, t.Events, (*deliveryState).consume),
		goka.Output(goka.Stream(t.Tallies), raw),
		goka.Output(goka.Stream(t.DeadLetters), raw),
		goka.Output(goka.Stream(t.Summaries), raw),
		goka.Persist(raw), // t.DeliveryTable
	)
}

// countPerStatus is the group graph of the second stage.
func (t *Topics) countPerStatus(a *exactlyonce.Attempt) *goka.GroupGraph {
	return goka.DefineGroup(goka.Group(t.CountsGroup),
		exactlyonce.Consume(a, t.Tallies, (*countsState).consume),
		goka.Persist(exactlyonce.RawCodec{}), // t.CountsTable
	)
}
