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
		"--kafka-sasl-password-file: reading secr": {KafkaSASLPasswordFile: "/none"},
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
