package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/processors/exactlyonce"
)

// reach connects to a broker as the flags in k say.
func reach(t *testing.T, k config.Kafka) error {
	t.Helper()
	client, err := k.Client("test", exactlyonce.Murmur2)
	require.NoError(t, err)
	c := client.Sarama()
	c.Metadata.Retry.Max = 0
	connected, err := sarama.NewClient(client.Brokers, c)
	if err != nil {
		return err
	}
	return connected.Close()
}

func TestLogin(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "me", "hunter2"))
			require.NoError(t, err)
			defer cluster.Close()
			k := config.Kafka{
				KafkaBrokers: cluster.ListenAddrs(), KafkaSASLMechanism: mechanism,
				KafkaSASLUser: "me", KafkaSASLPasswordFile: file(t, "hunter2\n"),
			}

			require.NoError(t, reach(t, k))

			k.KafkaSASLPasswordFile = file(t, "hunter3\n")
			require.Error(t, reach(t, k))
		})
	}
}

// A configuration that was made before takes the password of the day.
func TestAChangedPasswordIsReadAtTheNextLogin(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "me", "hunter2"))
	require.NoError(t, err)
	defer cluster.Close()
	k := config.Kafka{
		KafkaBrokers: cluster.ListenAddrs(), KafkaSASLMechanism: "SCRAM-SHA-512",
		KafkaSASLUser: "me", KafkaSASLPasswordFile: file(t, "of yesterday\n"),
	}
	client, err := k.Client("test", exactlyonce.Murmur2)
	require.NoError(t, err)
	c := client.Sarama()
	require.NoError(t, os.WriteFile(k.KafkaSASLPasswordFile, []byte("hunter2\n"), 0o600))

	connected, err := sarama.NewClient(client.Brokers, c)

	require.NoError(t, err)
	require.NoError(t, connected.Close())
}

// While a file cannot be read, what was read before stays in use.
func TestAFileThatIsGoneDoesNoHarm(t *testing.T) {
	k := config.Kafka{
		KafkaBrokers: []string{"localhost:9092"}, KafkaSASLMechanism: "PLAIN",
		KafkaSASLUser: "me", KafkaSASLPasswordFile: file(t, "first\n"),
	}
	client, err := k.Client("test", exactlyonce.Murmur2)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(k.KafkaSASLPasswordFile, []byte("second\n"), 0o600))
	require.Equal(t, "second", client.Sarama().Net.SASL.Password)
	require.NoError(t, os.Remove(k.KafkaSASLPasswordFile))
	require.Equal(t, "second", client.Sarama().Net.SASL.Password)
}

func TestATokenIsReadAtEachLogin(t *testing.T) {
	k := config.Kafka{KafkaBrokers: []string{"localhost:9092"}, KafkaSASLMechanism: "OAUTHBEARER", KafkaSASLTokenFile: file(t, "first\n")}
	client, err := k.Client("test", exactlyonce.Murmur2)
	require.NoError(t, err)
	tokens := client.Sarama().Net.SASL.TokenProvider

	for _, want := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(k.KafkaSASLTokenFile, []byte(want+"\n"), 0o600))
		got, err := tokens.Token()
		require.NoError(t, err)
		require.Equal(t, want, got.Token)
	}
}

func TestSettingsOfALoginGoTogether(t *testing.T) {
	for want, k := range map[string]config.Kafka{
		"": {KafkaSASLMechanism: "OAUTHBEARER", KafkaSASLTokenURL: "https://id/token", KafkaSASLUser: "me", KafkaSASLPasswordFile: "f"},
		"kafka-sasl-user: a mechanism with a password, or a token URL, and a user go together":              {KafkaSASLMechanism: "PLAIN", KafkaSASLPasswordFile: "f"},
		"kafka-sasl-password-file: a mechanism with a password, or a token URL, and a password go together": {KafkaSASLMechanism: "OAUTHBEARER", KafkaSASLTokenFile: "f", KafkaSASLPasswordFile: "f"},
		"kafka-sasl-token-url: OAUTHBEARER takes either --kafka-sasl-token-file or --kafka-sasl-token-url":  {KafkaSASLMechanism: "OAUTHBEARER"},
		"kafka-sasl-token-url: want https (http only on loopback): a secret is sent there":                  {KafkaSASLMechanism: "OAUTHBEARER", KafkaSASLTokenURL: "http://id/token", KafkaSASLUser: "me", KafkaSASLPasswordFile: "f"},
		"kafka-sasl-mechanism: tokens are for OAUTHBEARER":                                                  {KafkaSASLTokenFile: "f"},
	} {
		k.KafkaBrokers = []string{"localhost:9092"}
		problems := &config.Problems{}

		k.Check(problems)

		if want == "" {
			require.NoError(t, problems.Err())
			continue
		}
		require.ErrorContains(t, problems.Err(), want)
	}
}

// The broker's certificate is signed by itself, so that it is trusted only
// where it is given as an authority.
func TestTLS(t *testing.T) {
	certificate, authority := selfSigned(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}))
	require.NoError(t, err)
	defer cluster.Close()

	require.NoError(t, reach(t, config.Kafka{KafkaBrokers: cluster.ListenAddrs(), KafkaTLSCAFile: file(t, authority)}))
	require.Error(t, reach(t, config.Kafka{KafkaBrokers: cluster.ListenAddrs(), KafkaTLSEnable: true}))
	require.Error(t, reach(t, config.Kafka{KafkaBrokers: cluster.ListenAddrs()}))
}

func TestFilesThatCanNotBeUsedAreNamed(t *testing.T) {
	for want, k := range map[string]config.Kafka{
		"--kafka-tls-ca-file: open /none":          {KafkaTLSCAFile: "/none"},
		"--kafka-tls-ca-file: no PEM certificate":  {KafkaTLSCAFile: file(t, "hello")},
		"--kafka-tls-cert-file: open /none":        {KafkaTLSCertFile: "/none", KafkaTLSKeyFile: "/none"},
		"--kafka-sasl-password-file: reading secr": {KafkaSASLMechanism: "PLAIN", KafkaSASLPasswordFile: "/none"},
		"--kafka-sasl-token-file: reading secret":  {KafkaSASLMechanism: "OAUTHBEARER", KafkaSASLTokenFile: "/none"},
	} {
		_, err := k.Client("test", exactlyonce.Murmur2)
		require.ErrorContains(t, err, want)
	}
}

func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
