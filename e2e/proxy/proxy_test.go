package proxy_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/e2e/proxy"
)

// request is a frame with a header as Kafka's clients send it.
func request(api int16, correlation uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 12)
	b = binary.BigEndian.AppendUint16(b, uint16(api))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, correlation)
	return append(binary.BigEndian.AppendUint16(b, 2), "me"...)
}

// connect returns both ends of a connection through a proxy.
func connect(t *testing.T) (p *proxy.Proxy, client, broker net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	p, err = proxy.Listen(t.Context(), l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address())
	require.NoError(t, err)
	broker, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(); _ = broker.Close() })
	for _, c := range []net.Conn{client, broker} {
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	}
	return p, client, broker
}

// pass writes a frame at one end and demands it unchanged at the other.
func pass(t *testing.T, from, to net.Conn, frame []byte) {
	t.Helper()
	_, err := from.Write(frame)
	require.NoError(t, err)
	got := make([]byte, len(frame))
	_, err = io.ReadFull(to, got)
	require.NoError(t, err)
	require.Equal(t, frame, got)
}

// The broker has carried the commit out, and the client never learns it; the
// answer before that one passed unchanged.
func TestAnAnswerIsLostAfterItsRequestArrived(t *testing.T) {
	p, client, broker := connect(t)
	p.Judge(func(f proxy.Frame) proxy.Verdict {
		if f == (proxy.Frame{API: proxy.EndTxn, ClientID: "me", Answer: true}) {
			return proxy.Cut
		}
		return proxy.Pass
	})
	answer := func(correlation byte) []byte { return []byte{0, 0, 0, 5, 0, 0, 0, correlation, 42} }

	pass(t, client, broker, request(proxy.Produce, 7))
	pass(t, client, broker, request(proxy.EndTxn, 8))
	pass(t, broker, client, answer(7))
	_, err := broker.Write(answer(8))
	require.NoError(t, err)

	n, err := client.Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, int64(1), p.Requests(proxy.EndTxn))
}

func TestABrokerThatIsOutOfReach(t *testing.T) {
	p, client, broker := connect(t)
	pass(t, client, broker, request(proxy.Produce, 1))

	p.Refuse(true)

	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "who is connected is cut off")
	next, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address())
	require.NoError(t, err)
	require.NoError(t, next.SetDeadline(time.Now().Add(time.Minute)))
	_, err = next.Read(make([]byte, 1))
	require.Error(t, err, "nobody is let in")
	require.NoError(t, next.Close())
}
