package config

import (
	"net"
	"sync"

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
	KafkaSASLMechanism    string   `name:"kafka-sasl-mechanism" help:"How to log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, or empty for not at all." oneof:",PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER" placeholder:"NAME"`
	KafkaSASLUser         string   `name:"kafka-sasl-user" help:"User to log in as; with --kafka-sasl-token-url the client ID." placeholder:"NAME"`
	KafkaSASLPasswordFile string   `name:"kafka-sasl-password-file" help:"File whose first line is the password, or the client secret." placeholder:"FILE"`
	KafkaSASLTokenFile    string   `name:"kafka-sasl-token-file" help:"OAUTHBEARER: file whose first line is the token; read at each login." placeholder:"FILE"`
	KafkaSASLTokenURL     string   `name:"kafka-sasl-token-url" help:"OAUTHBEARER: where tokens are given for client credentials." placeholder:"URL"`
	KafkaSASLScopes       []string `name:"kafka-sasl-scopes" help:"OAUTHBEARER: scopes to ask for, comma-separated." placeholder:"SCOPE,…"`
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
	k.checkLogin(problems)
}

// Client builds the configuration of all Kafka clients. It reads the files
// that the flags name.
//
// Tokens, certificates and passwords for SCRAM are read again at each login, so
// that renewed ones need no restart. Authorities and passwords for PLAIN are read
// for each client, of which some live as long as the process; while they cannot
// be read, the last ones that could stay in use.
func (k *Kafka) Client(id string, hasher exactlyonce.Hasher) (exactlyonce.ClientConfig, error) {
	client := exactlyonce.ClientConfig{Brokers: k.KafkaBrokers, ClientID: id, Hasher: hasher}
	last, err := k.security()
	if err != nil {
		return client, err
	}
	var mu sync.Mutex
	client.Tune = func(c *sarama.Config) {
		mu.Lock()
		defer mu.Unlock()
		if fresh, err := k.security(); err == nil {
			last = fresh
		}
		last(c)
	}
	return client, nil
}

// security reads all files and returns what puts them to use.
func (k *Kafka) security() (func(*sarama.Config), error) {
	transport, err := k.transport()
	if err != nil {
		return nil, err
	}
	login, err := k.login()
	if err != nil {
		return nil, err
	}
	return func(c *sarama.Config) {
		if transport != nil {
			c.Net.TLS.Enable = true
			c.Net.TLS.Config = transport.Clone()
		}
		login(c)
	}, nil
}
