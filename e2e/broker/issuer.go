package broker

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// Issuer is a small OAuth 2.0 server on the loopback address: it gives tokens
// for client credentials, and tells the key that they are signed with.
type Issuer struct {
	server *httptest.Server
	key    *rsa.PrivateKey
	secret string
	life   time.Duration
	issued atomic.Int64
}

// NewIssuer starts an issuer whose clients all have one secret, and whose tokens
// last for life.
func NewIssuer(secret string, life time.Duration) (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making the issuer's key: %w", err)
	}
	i := &Issuer{key: key, secret: secret, life: life}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /keys", i.keys)
	i.server = httptest.NewServer(mux)
	return i, nil
}

// Close stops the issuer.
func (i *Issuer) Close() { i.server.Close() }

// TokenURL is where clients ask for tokens.
func (i *Issuer) TokenURL() string { return i.server.URL + "/token" }

// Issued is how many tokens clients have asked for.
func (i *Issuer) Issued() int64 { return i.issued.Load() }

// Token signs a token for a client.
func (i *Issuer) Token(client string) string {
	now := time.Now()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // of literals
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": "1"}) + "." + part(map[string]any{
		"iss": i.server.URL, "aud": "kafka", "sub": client, "scope": "kafka",
		"iat": now.Unix(), "exp": now.Add(i.life).Unix(),
	})
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err) // of a key that was just made
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	client, secret, _ := r.BasicAuth()
	if r.FormValue("grant_type") != "client_credentials" || secret != i.secret {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	i.issued.Add(1)
	answer(w, map[string]any{"access_token": i.Token(client), "token_type": "Bearer", "expires_in": i.life.Seconds()})
}

// keys answers in the form of RFC 7517.
func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	answer(w, map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256",
		"n": number(i.key.N), "e": number(big.NewInt(int64(i.key.E))),
	}}})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client sees what is missing
}

// settings are the lines of server.properties by which a listener takes tokens.
func (i *Issuer) settings(listener string) []string {
	prefix := "listener.name." + listener + ".oauthbearer.sasl."
	return []string{
		prefix + "jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
		prefix + "server.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
		prefix + "oauthbearer.jwks.endpoint.url=" + i.keysURL(),
		prefix + "oauthbearer.expected.audience=kafka",
		prefix + "oauthbearer.expected.issuer=" + i.server.URL,
	}
}

func (i *Issuer) keysURL() string { return i.server.URL + "/keys" }
