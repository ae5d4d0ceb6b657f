package api_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"deliverystat/api"
)

// tokenFile writes a token file.
func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var err error
	w.options.Tokens, err = api.NewTokens(tokenFile(t, "# board\nfirst-token\n\n  second-token  \n"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	a := w.api(t)
	for _, header := range []string{"Bearer first-token", "bearer second-token", "BEARER  first-token"} {
		require.Equal(t, http.StatusOK, get(t, a, "/v1/counts", "Authorization", header).StatusCode, header)
	}
	for header, challenge := range map[string]string{
		"":                     `Bearer realm="deliverystat"`,
		"Basic first-token":    `Bearer realm="deliverystat"`,
		"first-token":          `Bearer realm="deliverystat"`,
		"Bearer":               `Bearer realm="deliverystat", error="invalid_token"`,
		"Bearer first":         `Bearer realm="deliverystat", error="invalid_token"`,
		"Bearer First-token":   `Bearer realm="deliverystat", error="invalid_token"`,
		"Bearer # board":       `Bearer realm="deliverystat", error="invalid_token"`,
		"Bearer first-token x": `Bearer realm="deliverystat", error="invalid_token"`,
	} {
		for _, path := range []string{
			"/v1/counts", "/v1/counts/stream", "/v1/deliveries", "/v1/counts/CREATED", "/v1/deliveries/D-1", "/v1/statuses", "/v1/counts?x=1", "/v1/counts?access_token=first-token",
		} {
			got := get(t, a, path, "Authorization", header)
			requireProblem(t, got, "unauthorized")
			require.Equal(t, challenge, got.Header.Get("WWW-Authenticate"), header)
		}
	}
	for _, path := range []string{"/", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, get(t, a, path).StatusCode)
	}
	requireProblem(t, get(t, a, "/v1/counts?access_token=first-token", "Authorization", "Bearer first-token"), "invalid-parameters")
}

func TestTokenFileIsReadAgainWhenItChanged(t *testing.T) {
	path := tokenFile(t, "first\n")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tokens, err := api.NewTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		pass := func() { <-time.After(5 * time.Second) }

		require.NoError(t, os.WriteFile(path, []byte("second\n"), 0o600))
		require.True(t, tokens.Valid("first"), "looked at too early")
		pass()
		require.True(t, tokens.Valid("second"))
		require.False(t, tokens.Valid("first"))

		// A mounted secret is replaced by a link to another file, perhaps of the
		// same size and time.
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".new", []byte("third.\n"), 0o600))
		require.NoError(t, os.Chtimes(path+".new", info.ModTime(), info.ModTime()))
		require.NoError(t, os.Rename(path+".new", path))
		pass()
		require.True(t, tokens.Valid("third."))

		// What cannot be read, or is empty, locks nobody out and lets nobody in.
		for _, breakIt := range []func() error{
			func() error { return os.WriteFile(path, []byte("# none\n"), 0o600) },
			func() error { return os.WriteFile(path, []byte("two words\n"), 0o600) },
			func() error { return os.Remove(path) },
		} {
			log.Reset()
			require.NoError(t, breakIt())
			pass()
			require.True(t, tokens.Valid("third."))
			require.False(t, tokens.Valid(""))
			require.False(t, tokens.Valid("two words"))
			require.Contains(t, log.String(), "files not read, what they held before holds")
			require.NotContains(t, log.String(), "two words")
		}
		require.NoError(t, os.WriteFile(path, []byte("fourth\n"), 0o600))
		pass()
		require.True(t, tokens.Valid("fourth"))
	})
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"": "no tokens", "# x\n\n": "no tokens", "good\na b\n": "line 2"} {
		_, err := api.NewTokens(tokenFile(t, content), slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, want)
	}
	_, err := api.NewTokens(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
}
