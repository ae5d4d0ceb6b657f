package exactlyonce

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// stranger has an open transaction, and is none of the application's replicas.
type stranger struct {
	client   *kgo.Client
	id       string
	producer int64
	epoch    int16
}

// open begins a transaction. It is aborted when the test ends, if not before.
func (w *world) open(t *testing.T, id string) *stranger {
	t.Helper()
	s := &stranger{id: id}
	var err error
	s.client, err = kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxVersions(kversion.V3_6_0())) // later ones commit offsets by topic ID
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	s.producer, s.epoch, err = s.client.ProducerID(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.client.BeginTransaction())
	return s
}

// add makes a record part of the transaction.
func (s *stranger) add(t *testing.T, topic string, partition int32) {
	t.Helper()
	require.NoError(t, s.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte("1")}).FirstErr())
}

// pend makes an offset of a group part of the transaction.
func (s *stranger) pend(t *testing.T, group, topic string, partition int32) {
	t.Helper()
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = s.id, s.producer, s.epoch, group
	added, err := add.RequestWith(t.Context(), s.client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(added.ErrorCode))
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = s.id, s.producer, s.epoch, group
	commit.Generation = -1
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, 1
	commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	committed, err := commit.RequestWith(t.Context(), s.client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode))
}

func (s *stranger) abort(t *testing.T) {
	t.Helper()
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = s.id, s.producer, s.epoch
	ended, err := end.RequestWith(t.Context(), s.client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(ended.ErrorCode))
}

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// wait waits until the log has text.
func (l *lines) wait(t *testing.T, text string) {
	t.Helper()
	wait(t, 60*time.Second, func() bool { return strings.Contains(l.String(), text) }, func() string { return "the log does not say " + text })
}
