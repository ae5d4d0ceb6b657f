package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// transport returns nil if TLS is not to be used.
func (k *Kafka) transport() (*tls.Config, error) {
	if !k.KafkaTLSEnable && k.KafkaTLSCAFile == "" && k.KafkaTLSCertFile == "" {
		return nil, nil //nolint:nilnil // no TLS is not an error
	}
	transport := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.KafkaTLSCAFile != "" {
		pem, err := os.ReadFile(k.KafkaTLSCAFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-tls-ca-file: %w", err)
		}
		transport.RootCAs = x509.NewCertPool()
		if !transport.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--kafka-tls-ca-file: no PEM certificate in %s", k.KafkaTLSCAFile)
		}
	}
	if k.KafkaTLSCertFile != "" {
		// Read at each handshake, so that a renewed certificate is picked up.
		read := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(k.KafkaTLSCertFile, k.KafkaTLSKeyFile)
			return &pair, err
		}
		if _, err := read(); err != nil {
			return nil, fmt.Errorf("--kafka-tls-cert-file: %w", err)
		}
		transport.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	}
	return transport, nil
}
