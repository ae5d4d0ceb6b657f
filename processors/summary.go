package processors

import (
	"bytes"

	"deliverystat/codecs"
)

// summary is a record of delivery-summaries to be sent.
type summary struct {
	key   string
	value []byte
}

// closing is what the last summary has to say of a row that stands so.
func (st Standing) closing() codecs.Closing {
	if !st.Closed {
		return codecs.Closing{}
	}
	return codecs.Closing{Status: st.Status, ClosedAt: st.ClosedAt}
}

// summarize tells how row stands, and returns what it told.
//
// The order of calls for one delivery follows from the log alone: an event that
// changes a row, and the forgetting of it, come after what was owed before. So
// the summaries of a delivery do not depend on where epochs end.
func (p *partition) summarize(key string, row *codecs.Row) codecs.Closing {
	closing := p.settings.Standing(row, p.stream).closing()
	p.scratch.bytes = p.settings.Lifecycle.AppendSummary(p.scratch.bytes[:0], key, row, closing)
	p.running.summaries = append(p.running.summaries, summary{key, bytes.Clone(p.scratch.bytes)})
	return closing
}

// owe puts e in line for a summary: the clock has closed it, and its row says
// nothing of that yet.
func (p *partition) owe(e *entry) {
	e.owes = true
	p.owing = append(p.owing, e)
}

// payOwed sends the oldest summaries that are owed, about n of them, and notes
// so in their rows.
func (p *partition) payOwed(n int) error {
	i := 0
	for ; i < len(p.owing) && n > 0; i++ {
		e := p.owing[i]
		p.owing[i] = nil
		if !e.owes {
			continue
		}
		row, err := p.row(e)
		if err != nil {
			return err
		}
		row.Summarized = p.summarize(e.key, row)
		e.owes = false
		p.keep(e, row)
		n--
	}
	if p.owing = p.owing[i:]; len(p.owing) == 0 {
		p.owing = nil
	}
	return nil
}

// tellBuried sends the summary that is owed of a forgotten row, if one is.
func (p *partition) tellBuried(g grave) error {
	if !g.owes {
		return nil
	}
	value := g.row
	if value == nil {
		var err error
		if value, err = p.stored(g.key); err != nil {
			return err
		}
	}
	row, err := p.decode(&p.scratch.other, value)
	if err != nil {
		return err
	}
	p.summarize(g.key, row)
	return nil
}
