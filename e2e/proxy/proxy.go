package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The requests that faults are about, by their API key.
const (
	Produce           int16 = 0
	InitProducerID    int16 = 22
	AddPartitions     int16 = 24
	AddOffsets        int16 = 25
	EndTxn            int16 = 26
	TxnOffsetCommit   int16 = 28
	largestFrame            = 100 << 20
	headerAfterLength       = 10 // key, version, correlation ID, length of the client ID
)

// Frame is one request or its answer on its way.
type Frame struct {
	API      int16
	ClientID string
	Answer   bool
}

// Verdict says what becomes of a frame.
type Verdict int

// The verdicts.
const (
	Pass Verdict = iota
	Cut          // the frame is lost, and its connection ends
)

// Proxy carries the connections to one broker.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup
	passed   [128]atomic.Int64 // requests by API key

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	delay  time.Duration
	judge  func(Frame) Verdict
	closed bool // lets nobody in
}

// Listen starts a proxy at a free loopback port for the broker at target.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a proxy for %s: %w", target, err)
	}
	p := &Proxy{listener: l, target: target, open: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Requests returns how many requests of an API have been passed on.
func (p *Proxy) Requests(api int16) int64 { return p.passed[api].Load() }

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Refuse(true)
	p.running.Wait()
	return err
}

// CutAll ends all connections that are open now.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close() // that is the fault
	}
}

// Refuse ends all connections and lets nobody in, as a broker that is gone; false
// heals.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	p.closed = refuse
	p.mu.Unlock()
	if refuse {
		p.CutAll()
	}
}

// Slow delays every frame in both directions from now on; 0 heals.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// Judge lets judge decide on every frame from now on; nil heals. It is called
// by many goroutines.
func (p *Proxy) Judge(judge func(Frame) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

func (p *Proxy) fault() (time.Duration, func(Frame) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay, p.judge
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.carry(c) })
	}
}

// carry connects to the broker, and passes frames on until either side ends.
func (p *Proxy) carry(client net.Conn) {
	broker, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = client.Close() // as a broker that is not there
		return
	}
	if !p.enter(client, broker) {
		return
	}
	defer p.leave(client, broker)
	l := &link{waiting: map[int32]Frame{}}
	var both sync.WaitGroup
	both.Go(func() { p.pump(client, broker, l.request) })
	both.Go(func() { p.pump(broker, client, l.answer) })
	both.Wait()
}

func (p *Proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close() // nobody uses it yet
			continue
		}
		p.open[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // both are done for when one is
		delete(p.open, c)
	}
}

// pump passes frames from one side to the other until one of them ends, and
// then ends both.
func (p *Proxy) pump(from, to net.Conn, name func(body []byte) (Frame, error)) {
	defer func() {
		_ = from.Close() // whatever the reason was, the link is of no use
		_ = to.Close()
	}()
	for {
		frame, body, err := next(from, name)
		if err != nil {
			return
		}
		delay, judge := p.fault()
		if delay > 0 {
			<-time.After(delay) // the fault itself
		}
		if judge != nil && judge(frame) == Cut {
			return
		}
		if !frame.Answer && int(frame.API) < len(p.passed) {
			p.passed[frame.API].Add(1)
		}
		if _, err := to.Write(body); err != nil {
			return
		}
	}
}

// next reads one frame with its length in front.
func next(from io.Reader, name func(body []byte) (Frame, error)) (Frame, []byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return Frame{}, nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > largestFrame {
		return Frame{}, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, 4+n)
	copy(body, length[:])
	if _, err := io.ReadFull(from, body[4:]); err != nil {
		return Frame{}, nil, err
	}
	frame, err := name(body[4:])
	return frame, body, err
}

// link is one connection: it knows which requests wait for their answer.
type link struct {
	mu      sync.Mutex
	waiting map[int32]Frame
}

var errShort = errors.New("a frame without a header")

func (l *link) request(body []byte) (Frame, error) {
	if len(body) < headerAfterLength {
		return Frame{}, errShort
	}
	f := Frame{API: int16(binary.BigEndian.Uint16(body))}
	correlation := int32(binary.BigEndian.Uint32(body[4:]))
	if n := int(int16(binary.BigEndian.Uint16(body[8:]))); n > 0 && len(body) >= headerAfterLength+n {
		f.ClientID = string(body[headerAfterLength : headerAfterLength+n])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[correlation] = Frame{f.API, f.ClientID, true}
	return f, nil
}

func (l *link) answer(body []byte) (Frame, error) {
	if len(body) < 4 {
		return Frame{}, errShort
	}
	correlation := int32(binary.BigEndian.Uint32(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.waiting[correlation]
	delete(l.waiting, correlation)
	f.Answer = true
	return f, nil
}
