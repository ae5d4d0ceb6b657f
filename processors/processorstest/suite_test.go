package processorstest_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/codecs"
	"deliverystat/processors/market"
	"deliverystat/processors/processorstest"
)

// ideal is a service that is the model itself, so that the suite is known to
// accept what is right, and to ask for nothing that markets do not give.
type ideal struct {
	rules   market.Rules
	decoder *codecs.Decoder
	log     [][]processorstest.LogRecord
	rows    map[string]codecs.Delivery // nil: not worked out since the log has grown
}

func (i *ideal) Features() processorstest.Features {
	return processorstest.Features{Crash: true, Rebalance: true, BrokerRestart: true}
}
func (i *ideal) Partitions() int { return len(i.log) }
func (i *ideal) Replicas() int   { return 2 }

func (i *ideal) Produce(_ testing.TB, records []processorstest.Record) {
	i.rows = nil
	for _, r := range records {
		p := processorstest.Partition([]byte(r.Key), int32(len(i.log)))
		if r.Timestamp.IsZero() {
			r.Timestamp = time.Now()
		}
		i.log[p] = append(i.log[p], processorstest.LogRecord{Record: r, Offset: 2 * int64(len(i.log[p]))})
	}
}

func (i *ideal) Log(testing.TB) [][]processorstest.LogRecord { return i.log }
func (i *ideal) Settle(testing.TB)                           {}

func (i *ideal) Counts(_ testing.TB, _ int, scope string) (processorstest.Reading, bool) {
	w := processorstest.Truth(i.rules, i.decoder, i.log)
	live, closed := w.Counts(scope, w.End())
	return processorstest.Reading{Next: w.End(), Live: live, Closed: closed}, true
}

func (i *ideal) Delivery(_ testing.TB, _ int, id string) (codecs.Delivery, bool) {
	if i.rows == nil {
		i.rows = map[string]codecs.Delivery{}
		for _, records := range i.log {
			m := market.NewModel(i.rules)
			for _, r := range records {
				m.Apply(processorstest.Entry(i.decoder, &r, false))
			}
			maps.Copy(i.rows, m.Rows())
		}
	}
	d, found := i.rows[id]
	return d, found
}

func (i *ideal) DeadLetters(testing.TB) map[codecs.Reason]int {
	return processorstest.Truth(i.rules, i.decoder, i.log).DeadLetters()
}

func (i *ideal) Crash(testing.TB, int, bool) {}
func (i *ideal) Rebalance(testing.TB)        {}
func (i *ideal) RestartBroker(testing.TB)    {}

func TestSuiteAcceptsTheModel(t *testing.T) {
	t.Parallel()
	processorstest.Run(t, func(t *testing.T, rules market.Rules) processorstest.Harness {
		d, err := codecs.NewDecoder(codecs.FormatAuto, rules.Lifecycle)
		require.NoError(t, err)
		return &ideal{rules: rules, decoder: d, log: make([][]processorstest.LogRecord, 3)}
	})
}
