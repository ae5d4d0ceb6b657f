package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/IBM/sarama"

	"deliverystat/processors/exactlyonce"
)

// Kafka says how to reach the brokers. All commands that talk to Kafka have
// these flags.
type Kafka struct {
	KafkaBrokers          []string `help:"Brokers to ask first, comma-separated (required)." placeholder:"HOST:PORT,…"`
	KafkaTLSEnable        bool     `name:"kafka-tls-enable" help:"Use TLS with the system's certificate authorities."`
	KafkaTLSCAFile        string   `name:"kafka-tls-ca-file" help:"Use TLS; certificate authorities that sign the brokers' certificates (PEM)." placeholder:"FILE"`
	KafkaTLSCertFile      string   `name:"kafka-tls-cert-file" help:"Use TLS; our own certificate (PEM)." placeholder:"FILE"`
	KafkaTLSKeyFile       string   `name:"kafka-tls-key-file" help:"Private key of our own certificate (PEM)." placeholder:"FILE"`
	KafkaSASLMechanism    string   `name:"kafka-sasl-mechanism" help:"How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, or empty for not at all." oneof:",PLAIN,SCRAM-SHA-256,SCRAM-SHA-512" placeholder:"NAME"`
	KafkaSASLUser         string   `name:"kafka-sasl-user" help:"User to log in as." placeholder:"NAME"`
	KafkaSASLPasswordFile string   `name:"kafka-sasl-password-file" help:"File whose first line is the password." placeholder:"FILE"`
}

// Check implements [Checker].
func (k *Kafka) Check(problems *Problems) {
	if len(k.KafkaBrokers) == 0 {
		problems.Add("kafka-brokers", "required: give at least one broker as host:port")
	}
	for _, broker := range k.KafkaBrokers {
		if host, port, err := net.SplitHostPort(broker); err != nil || host == "" || port == "" {
			problems.Add("kafka-brokers", "want host:port, got %q", broker)
		}
	}
	if (k.KafkaTLSCertFile == "") != (k.KafkaTLSKeyFile == "") {
		problems.Add("kafka-tls-key-file", "a certificate and its key go together")
	}
	if (k.KafkaSASLMechanism == "") != (k.KafkaSASLUser == "") {
		problems.Add("kafka-sasl-user", "a mechanism and a user go together")
	}
	if (k.KafkaSASLMechanism == "") != (k.KafkaSASLPasswordFile == "") {
		problems.Add("kafka-sasl-password-file", "a mechanism and a password go together")
	}
}

// Client builds the configuration of all Kafka clients. It reads the files
// that the flags name.
func (k *Kafka) Client(id string, hasher exactlyonce.Hasher) (exactlyonce.ClientConfig, error) {
	client := exactlyonce.ClientConfig{Brokers: k.KafkaBrokers, ClientID: id, Hasher: hasher}
	transport, err := k.tls()
	if err != nil {
		return client, err
	}
	var password Secret
	if k.KafkaSASLPasswordFile != "" {
		if password, err = ReadSecret(k.KafkaSASLPasswordFile); err != nil {
			return client, fmt.Errorf("--kafka-sasl-password-file: %w", err)
		}
	}
	client.Tune = func(c *sarama.Config) {
		if transport != nil {
			c.Net.TLS.Enable = true
			c.Net.TLS.Config = transport.Clone()
		}
		if k.KafkaSASLMechanism != "" {
			k.login(c, password)
		}
	}
	return client, nil
}

// tls returns nil if TLS is not to be used.
func (k *Kafka) tls() (*tls.Config, error) {
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

func (k *Kafka) login(c *sarama.Config, password Secret) {
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = sarama.SASLMechanism(k.KafkaSASLMechanism)
	c.Net.SASL.User = k.KafkaSASLUser
	c.Net.SASL.Password = password.Reveal()
	if strings.HasPrefix(k.KafkaSASLMechanism, "SCRAM-") {
		c.Net.SASL.SCRAMClientGeneratorFunc = scramClient(c.Net.SASL.Mechanism)
	}
}
