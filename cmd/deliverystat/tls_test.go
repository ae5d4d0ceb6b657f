package main

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With a certificate, the API answers by TLS, and the demo says so.
func TestTheAPIAnswersByTLS(t *testing.T) {
	t.Parallel()
	example := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate, and a client that trusts it
	t.Cleanup(example.Close)
	pair := example.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	httpAddress, admin := freeAddress(t), freeAddress(t)

	out, stop := background(t, "demo", "--http-tls-cert-file="+certFile, "--http-tls-key-file="+keyFile,
		"--http-address="+httpAddress, "--admin-address="+admin)
	eventually(t, "the address", func() (string, bool) {
		return out.String(), strings.Contains(out.String(), "https://"+httpAddress+"/\n")
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+httpAddress+"/v1/counts", nil)
	require.NoError(t, err)
	response, err := example.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	example.Client().CloseIdleConnections()
	require.Equal(t, 0, stop().code)

	got := invoke(t, "demo", "--http-tls-cert-file="+certFile)
	require.Equal(t, 2, got.code)
	require.Equal(t, []string{"deliverystat: --http-tls-key-file: required by --http-tls-cert-file"}, got.lines())
	got = invoke(t, "demo", "--http-tls-cert-file=/none", "--http-tls-key-file=/none", "--http-address=127.0.0.1:0", "--admin-address=127.0.0.1:0")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, "--http-tls-cert-file, --http-tls-key-file: reading TLS certificate: stat /none")
}
