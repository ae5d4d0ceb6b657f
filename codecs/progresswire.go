package codecs

import "google.golang.org/protobuf/encoding/protowire"

// Fields of the messages Progress, Setting, CountsProgress and PartitionCounts.
const (
	progressTopicID     protowire.Number = 2
	progressNext        protowire.Number = 3
	progressPosition    protowire.Number = 4
	progressClock       protowire.Number = 5
	progressHorizon     protowire.Number = 6
	progressFirstRecord protowire.Number = 7
	progressLastRecord  protowire.Number = 8
	progressSettings    protowire.Number = 9

	settingName  protowire.Number = 1
	settingValue protowire.Number = 2

	countsTopicID    protowire.Number = 2
	countsNext       protowire.Number = 3
	countsPartitions protowire.Number = 4

	partitionNumber       protowire.Number = 1
	partitionTopicID      protowire.Number = 2
	partitionPosition     protowire.Number = 3
	partitionClock        protowire.Number = 4
	partitionHorizon      protowire.Number = 5
	partitionSettingsHash protowire.Number = 6
	partitionFull         protowire.Number = 7
	partitionAudited      protowire.Number = 8
	partitionRowDrift     protowire.Number = 9
	partitionTableDrift   protowire.Number = 10
)

// AppendProgress appends the bytes of p.
func AppendProgress(b []byte, p *Progress) []byte {
	b = appendVersion(b)
	b = appendText(b, progressTopicID, p.TopicID)
	b = appendInt(b, progressNext, p.Next)
	b = appendInt(b, progressPosition, p.Position)
	b = appendOptionalTime(b, progressClock, p.Clock)
	b = appendOptionalTime(b, progressHorizon, p.Horizon)
	b = appendOptionalTime(b, progressFirstRecord, p.FirstRecord)
	b = appendOptionalTime(b, progressLastRecord, p.LastRecord)
	for i := range p.Settings {
		b = beginMessage(b, progressSettings)
		start := len(b)
		b = appendText(b, settingName, p.Settings[i].Name)
		b = appendText(b, settingValue, p.Settings[i].Value)
		b = endMessage(b, start)
	}
	return b
}

// ReadProgress reads the bytes of a progress row of latest-delivery.
func ReadProgress(b []byte) (*Progress, error) {
	p := &Progress{Clock: None, Horizon: None, FirstRecord: None, LastRecord: None}
	var version uint64
	m := newMessage(b)
	for m.next() {
		switch m.field {
		case fieldVersion:
			version = m.version()
		case progressTopicID:
			p.TopicID = string(m.bytes())
		case progressNext:
			p.Next = m.int()
		case progressPosition:
			p.Position = m.int()
		case progressClock:
			p.Clock = m.time()
		case progressHorizon:
			p.Horizon = m.time()
		case progressFirstRecord:
			p.FirstRecord = m.time()
		case progressLastRecord:
			p.LastRecord = m.time()
		case progressSettings:
			p.Settings = append(p.Settings, readSetting(&m))
		default:
			m.skip()
		}
	}
	if err := m.finish("progress row", version); err != nil {
		return nil, err
	}
	return p, nil
}

func readSetting(m *message) Setting {
	var s Setting
	outer := m.enter()
	for m.next() {
		switch m.field {
		case settingName:
			s.Name = string(m.bytes())
		case settingValue:
			s.Value = string(m.bytes())
		default:
			m.skip()
		}
	}
	m.leave(outer)
	return s
}

// AppendCountsProgress appends the bytes of p.
func AppendCountsProgress(b []byte, p *CountsProgress) []byte {
	b = appendVersion(b)
	b = appendText(b, countsTopicID, p.TopicID)
	b = appendInt(b, countsNext, p.Next)
	for i := range p.Partitions {
		c := &p.Partitions[i]
		b = beginMessage(b, countsPartitions)
		start := len(b)
		b = appendInt(b, partitionNumber, int64(c.Partition))
		b = appendText(b, partitionTopicID, c.TopicID)
		b = appendInt(b, partitionPosition, c.Position)
		b = appendOptionalTime(b, partitionClock, c.Clock)
		b = appendOptionalTime(b, partitionHorizon, c.Horizon)
		b = appendHash(b, partitionSettingsHash, c.SettingsHash)
		b = appendBool(b, partitionFull, c.Full)
		b = appendOptionalTime(b, partitionAudited, c.Audit.At)
		b = appendStatusCounts(b, partitionRowDrift, c.Audit.Rows)
		b = appendStatusCounts(b, partitionTableDrift, c.Audit.Table)
		b = endMessage(b, start)
	}
	return b
}

// ReadCountsProgress reads the bytes of the progress row of count-per-status.
func ReadCountsProgress(b []byte) (*CountsProgress, error) {
	p := &CountsProgress{}
	var version uint64
	var names nameSet
	m := newMessage(b)
	for m.next() {
		switch m.field {
		case fieldVersion:
			version = m.version()
		case countsTopicID:
			p.TopicID = string(m.bytes())
		case countsNext:
			p.Next = m.int()
		case countsPartitions:
			p.Partitions = append(p.Partitions, readPartitionCounts(&m, &names))
		default:
			m.skip()
		}
	}
	if err := m.finish("counts progress row", version); err != nil {
		return nil, err
	}
	return p, nil
}

func readPartitionCounts(m *message, names *nameSet) PartitionCounts {
	c := PartitionCounts{Clock: None, Horizon: None, Audit: Audit{At: None}}
	outer := m.enter()
	for m.next() {
		switch m.field {
		case partitionNumber:
			c.Partition = m.int32()
		case partitionTopicID:
			c.TopicID = string(m.bytes())
		case partitionPosition:
			c.Position = m.int()
		case partitionClock:
			c.Clock = m.time()
		case partitionHorizon:
			c.Horizon = m.time()
		case partitionSettingsHash:
			c.SettingsHash = m.hash()
		case partitionFull:
			c.Full = m.bool()
		case partitionAudited:
			c.Audit.At = m.time()
		case partitionRowDrift:
			c.Audit.Rows = append(c.Audit.Rows, readStatusCount(m, names))
		case partitionTableDrift:
			c.Audit.Table = append(c.Audit.Table, readStatusCount(m, names))
		default:
			m.skip()
		}
	}
	m.leave(outer)
	return c
}
