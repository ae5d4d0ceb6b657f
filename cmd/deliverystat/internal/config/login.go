package config

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const oauthBearer = "OAUTHBEARER"

// tokenTimeout bounds the answer of a token endpoint: a broker waits for it.
const tokenTimeout = 10 * time.Second

// checkLogin looks for settings of a login that do not go together.
func (k *Kafka) checkLogin(problems *Problems) {
	credentials := k.KafkaSASLMechanism != "" && (k.KafkaSASLMechanism != oauthBearer || k.KafkaSASLTokenURL != "")
	if credentials != (k.KafkaSASLUser != "") {
		problems.Add("kafka-sasl-user", "a mechanism with a password, or a token URL, and a user go together")
	}
	if credentials != (k.KafkaSASLPasswordFile != "") {
		problems.Add("kafka-sasl-password-file", "a mechanism with a password, or a token URL, and a password go together")
	}
	if k.KafkaSASLMechanism != oauthBearer {
		if k.KafkaSASLTokenFile != "" || k.KafkaSASLTokenURL != "" {
			problems.Add("kafka-sasl-mechanism", "tokens are for %s", oauthBearer)
		}
		return
	}
	if (k.KafkaSASLTokenFile == "") == (k.KafkaSASLTokenURL == "") {
		problems.Add("kafka-sasl-token-url", "%s takes either --kafka-sasl-token-file or --kafka-sasl-token-url", oauthBearer)
	}
	if k.KafkaSASLTokenURL != "" && !confidential(k.KafkaSASLTokenURL) {
		problems.Add("kafka-sasl-token-url", "want https (http only on loopback): a secret is sent there")
	}
}

// confidential reports whether nobody on the way can read what is sent to raw.
func confidential(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// login reads the secret and returns what makes clients log in with it.
func (k *Kafka) login() (func(*sarama.Config), error) {
	if k.KafkaSASLMechanism == "" {
		return func(*sarama.Config) {}, nil
	}
	var password Secret
	var tokens sarama.AccessTokenProvider
	var err error
	if k.KafkaSASLPasswordFile != "" {
		if password, err = ReadSecret(k.KafkaSASLPasswordFile); err != nil {
			return nil, fmt.Errorf("--kafka-sasl-password-file: %w", err)
		}
	}
	switch {
	case k.KafkaSASLTokenFile != "":
		if _, err = ReadSecret(k.KafkaSASLTokenFile); err != nil {
			return nil, fmt.Errorf("--kafka-sasl-token-file: %w", err)
		}
		tokens = tokenFile(k.KafkaSASLTokenFile)
	case k.KafkaSASLTokenURL != "":
		tokens = k.tokenEndpoint(password)
	}
	return func(c *sarama.Config) {
		c.Net.SASL.Enable = true
		c.Net.SASL.Mechanism = sarama.SASLMechanism(k.KafkaSASLMechanism)
		c.Net.SASL.User = k.KafkaSASLUser
		c.Net.SASL.Password = password.Reveal()
		c.Net.SASL.TokenProvider = tokens
		if strings.HasPrefix(k.KafkaSASLMechanism, "SCRAM-") {
			c.Net.SASL.SCRAMClientGeneratorFunc = scramClient(c.Net.SASL.Mechanism, k.KafkaSASLPasswordFile)
		}
	}, nil
}

// tokenFile gives the token that a file holds at the moment: somebody else
// renews it.
type tokenFile string

// Token implements sarama.AccessTokenProvider.
func (f tokenFile) Token() (*sarama.AccessToken, error) {
	token, err := ReadSecret(string(f))
	if err != nil {
		return nil, fmt.Errorf("--kafka-sasl-token-file: %w", err)
	}
	return &sarama.AccessToken{Token: token.Reveal()}, nil
}

// tokenEndpoint asks for tokens by OAuth 2.0 client credentials (RFC 6749,
// section 4.4), and again when one expires.
func (k *Kafka) tokenEndpoint(secret Secret) sarama.AccessTokenProvider {
	credentials := clientcredentials.Config{
		ClientID: k.KafkaSASLUser, ClientSecret: secret.Reveal(), TokenURL: k.KafkaSASLTokenURL, Scopes: k.KafkaSASLScopes,
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTimeout})
	return tokenSource{credentials.TokenSource(ctx)}
}

type tokenSource struct{ source oauth2.TokenSource }

// Token implements sarama.AccessTokenProvider.
func (s tokenSource) Token() (*sarama.AccessToken, error) {
	token, err := s.source.Token()
	if err != nil {
		return nil, fmt.Errorf("--kafka-sasl-token-url: %w", err)
	}
	return &sarama.AccessToken{Token: token.AccessToken}, nil
}
