package api_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

// writeCertificate writes a certificate of this number, and its key.
func writeCertificate(t *testing.T, number int64, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

func TestCertificateIsReadAgainWhenItChanged(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		_, err := api.NewTLS(certFile, keyFile, logger)
		require.ErrorIs(t, err, os.ErrNotExist)

		writeCertificate(t, 1, certFile, keyFile)
		settings, err := api.NewTLS(certFile, keyFile, logger)
		require.NoError(t, err)
		served := func() int64 {
			<-time.After(5 * time.Second)
			c, err := settings.GetCertificate(nil)
			require.NoError(t, err)
			leaf, err := x509.ParseCertificate(c.Certificate[0])
			require.NoError(t, err)
			return leaf.SerialNumber.Int64()
		}
		require.EqualValues(t, 1, served())
		writeCertificate(t, 2, certFile, keyFile)
		require.EqualValues(t, 2, served())

		// Only one of the two files is new yet.
		require.Empty(t, log.String())
		writeCertificate(t, 3, certFile, filepath.Join(dir, "new.key"))
		require.EqualValues(t, 2, served())
		require.Contains(t, log.String(), "files not read, what they held before holds")
		require.NoError(t, os.Rename(filepath.Join(dir, "new.key"), keyFile))
		require.EqualValues(t, 3, served())
		require.NoError(t, os.Remove(certFile))
		require.EqualValues(t, 3, served())
	})
}

// A stream works through TLS and HTTP/2 as without, and ends in order.
func TestStreamOverHTTP2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeCertificate(t, 1, certFile, keyFile)
	w := newWorld(t)
	a := w.api(t)
	server := api.NewServer("127.0.0.1:0", a, slog.New(slog.DiscardHandler))
	var err error
	server.TLSConfig, err = api.NewTLS(certFile, keyFile, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", server.Addr)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- server.ServeTLS(listener, "", "") }()

	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, //nolint:gosec // its own certificate
	}
	s := &served{t: t, client: &http.Client{Transport: transport}}
	response := s.get("https://" + listener.Addr().String() + streamPath) //nolint:bodyclose // closed with the test
	require.Equal(t, 2, response.ProtoMajor)
	events := s.read(response)
	first, _ := events.read()
	require.Equal(t, "counts", first.kind)
	w.counts.set(moved(18))
	second, _ := events.read()
	require.Equal(t, "0:1042,1:998,2:18@t1", second.id)
	a.Drain()
	_, more := events.read()
	require.False(t, more)
	require.NoError(t, events.lines.Err())
	require.NoError(t, server.Shutdown(t.Context()))
	require.ErrorIs(t, <-ended, http.ErrServerClosed)
}
