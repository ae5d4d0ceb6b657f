package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
)

// Tokens are the bearer tokens of a file, one a line; empty lines and lines that
// begin with # do not count. A changed file is read again within seconds; while
// it cannot be read, or has no tokens, the last good ones hold.
type Tokens struct{ hashes reloaded[[][sha256.Size]byte] }

// NewTokens reads the tokens of the file at path. An unreadable file, one
// without tokens, and a token with white space in it are errors.
func NewTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{reloaded[[][sha256.Size]byte]{
		what: "token file", paths: []string{path}, logger: logger,
		read: func() ([][sha256.Size]byte, error) {
			content, err := os.ReadFile(path) //nolint:gosec // named by the operator
			if err != nil {
				return nil, err
			}
			return hashTokens(content)
		},
	}}
	if err := t.hashes.start(); err != nil {
		return nil, err
	}
	return t, nil
}

// Valid reports whether token is one of the file. It takes the same time for
// every token of the same length.
func (t *Tokens) Valid(token string) bool {
	hash := sha256.Sum256([]byte(token))
	found := 0
	for _, h := range t.hashes.get() {
		// Hashes, not tokens: a comparison of tokens would tell their length.
		found |= subtle.ConstantTimeCompare(hash[:], h[:])
	}
	return found == 1
}

func hashTokens(content []byte) ([][sha256.Size]byte, error) {
	var hashes [][sha256.Size]byte
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		token := strings.TrimSpace(lines.Text())
		if token == "" || strings.HasPrefix(token, "#") {
			continue
		}
		if strings.ContainsAny(token, " \t") {
			return nil, fmt.Errorf("line %d: a token has no white space", n)
		}
		hashes = append(hashes, sha256.Sum256([]byte(token)))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hashes) == 0 {
		return nil, fmt.Errorf("no tokens in %d bytes", len(content))
	}
	return hashes, nil
}

// authenticate lets requests through that carry one of the tokens in their
// Authorization header. A token in the query string is an unknown parameter:
// there it would end up in logs.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, given := bearer(r); {
		case a.authorized(r):
			next.ServeHTTP(w, r)
		case given:
			w.Header().Set("WWW-Authenticate", `Bearer realm="deliverystat", error="invalid_token"`)
			fail(w, r, problemUnauthorized, "the token is not valid")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="deliverystat"`)
			fail(w, r, problemUnauthorized, "send one of the API tokens in the header Authorization: Bearer <token>")
		}
	})
}

// authorized reports whether r may be answered now.
func (a *API) authorized(r *http.Request) bool {
	if a.options.Tokens == nil {
		return true
	}
	token, given := bearer(r)
	return given && a.options.Tokens.Valid(token)
}

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, given bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}
