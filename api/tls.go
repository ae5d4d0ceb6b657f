package api

import (
	"crypto/tls"
	"log/slog"
)

// NewTLS returns the settings of a server with the certificate of these PEM
// files, for HTTP/2 and HTTP/1.1. Changed files are read again within seconds of
// a connection; while they make no certificate, such as between the writes of the
// two, the last one holds. Files that make none at first are an error.
func NewTLS(certFile, keyFile string, logger *slog.Logger) (*tls.Config, error) {
	certificate := &reloaded[tls.Certificate]{
		what: "TLS certificate", paths: []string{certFile, keyFile}, logger: logger,
		read: func() (tls.Certificate, error) { return tls.LoadX509KeyPair(certFile, keyFile) },
	}
	if err := certificate.start(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c := certificate.get()
			return &c, nil
		},
	}, nil
}
