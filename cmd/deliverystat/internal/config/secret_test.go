package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"deliverystat/cmd/deliverystat/internal/config"
)

func TestASecretIsNeverShown(t *testing.T) {
	secret := config.NewSecret("hunter2")
	holder := struct {
		S config.Secret
		P *config.Secret
	}{secret, &secret}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, v := range []any{secret, &secret, holder, &holder, []config.Secret{secret}, map[string]config.Secret{"a": secret}} {
			fmt.Fprintf(&shown, verb, v)
		}
	}
	fmt.Fprintln(&shown, secret, fmt.Errorf("logging in with %v: %w", secret, fmt.Errorf("no")))
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("x", "secret", secret, "holder", holder, "group", slog.GroupValue(slog.Any("s", &secret)))
	}
	asJSON, err := json.Marshal(holder)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(holder)
	require.NoError(t, err)
	shown.Write(asJSON)
	shown.Write(asYAML)

	require.NotContains(t, shown.String(), "hunter2")
	require.NotContains(t, shown.String(), fmt.Sprintf("%x", "hunter2"))
	require.Contains(t, shown.String(), "[redacted]")
	require.Equal(t, "hunter2", secret.Reveal())
}

func TestASecretIsTheFirstLineOfItsFile(t *testing.T) {
	secret, err := config.ReadSecret(file(t, "hunter2\r\nrest\n"))
	require.NoError(t, err)
	require.Equal(t, "hunter2", secret.Reveal())

	_, err = config.ReadSecret(file(t, "\nhunter2\n"))
	require.ErrorContains(t, err, "is empty")
	_, err = config.ReadSecret("/none/at/all")
	require.ErrorContains(t, err, "reading secret: open /none/at/all")
}
