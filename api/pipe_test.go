package api_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

// pipes is a listener whose connections live in memory: an end that is not read
// blocks the other at once, and both stand still with the clock of a bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.accepted <- server
	return client, nil
}

// served is an API behind the server that it has in production.
type served struct {
	pipes

	t      testing.TB
	client *http.Client
}

// serve serves a until the test ends.
func serve(t testing.TB, a *api.API) *served {
	t.Helper()
	p := pipes{make(chan net.Conn), make(chan struct{})}
	server := api.NewServer("", a, slog.New(slog.DiscardHandler))
	ended := make(chan error)
	go func() { ended <- server.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
		transport.CloseIdleConnections()
	})
	return &served{pipes: p, t: t, client: &http.Client{Transport: transport}}
}

// get sends a GET of a path, or a URL; the body is closed with the test. Headers come as name,
// value, name, value.
func (s *served) get(path string, headers ...string) *http.Response {
	s.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = "http://deliverystat" + path
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, path, nil)
	require.NoError(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(r)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}
