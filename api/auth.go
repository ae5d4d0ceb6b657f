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
	"sync"
	"time"
)

// tokensEvery is how often the token file is looked at, while requests come.
const tokensEvery = 5 * time.Second

// Tokens are the bearer tokens of a file, one a line; empty lines and lines that
// begin with # do not count. A changed file is read again within seconds; while
// it cannot be read, or has no tokens, the last good ones hold.
type Tokens struct {
	path   string
	logger *slog.Logger

	mu      sync.Mutex
	checked time.Time
	file    os.FileInfo
	hashes  [][sha256.Size]byte
}

// NewTokens reads the tokens of the file at path. An unreadable file, one
// without tokens, and a token with white space in it are errors.
func NewTokens(path string, logger *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, logger: logger}
	if err := t.read(); err != nil {
		return nil, err
	}
	t.checked = time.Now()
	return t, nil
}

// Valid reports whether token is one of the file. It takes the same time for
// every token of the same length.
func (t *Tokens) Valid(token string) bool {
	hash := sha256.Sum256([]byte(token))
	found := 0
	for _, h := range t.current() {
		// Hashes, not tokens: a comparison of tokens would tell their length.
		found |= subtle.ConstantTimeCompare(hash[:], h[:])
	}
	return found == 1
}

// current returns the hashes of the tokens, read anew if the file changed.
func (t *Tokens) current() [][sha256.Size]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.checked) >= tokensEvery {
		t.checked = now
		file, err := os.Stat(t.path)
		if err == nil && !sameVersion(file, t.file) {
			err = t.read()
		}
		if err != nil {
			t.logger.Warn("token file not read, the last tokens hold", "err", err)
		}
	}
	return t.hashes
}

// sameVersion reports whether a file is as it was. A mounted secret is a link to
// a new file after each change, whose time may be the old one.
func sameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// read reads the file.
func (t *Tokens) read() error {
	// The file is looked at before it is read: a change between the two is then
	// found the next time.
	file, err := os.Stat(t.path)
	if err != nil {
		return fmt.Errorf("reading API tokens: %w", err)
	}
	content, err := os.ReadFile(t.path)
	if err != nil {
		return fmt.Errorf("reading API tokens: %w", err)
	}
	hashes, err := hashTokens(content)
	if err != nil {
		return fmt.Errorf("reading API tokens of %s: %w", t.path, err)
	}
	t.file, t.hashes = file, hashes
	return nil
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
