package broker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Authority signs certificates, for a day.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// PEM is the authority's own certificate.
	PEM []byte
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	template := template("deliverystat test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	return &Authority{template, key, encode("CERTIFICATE", der)}, nil
}

// Issue makes a key and a certificate for name, as a client and as a server on
// the loopback address, both as PEM.
func (a *Authority) Issue(name string) (certificate, key []byte, err error) {
	t := template(name)
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the key of %s: %w", name, err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8), nil
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
