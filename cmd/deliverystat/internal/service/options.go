package service

import (
	"log/slog"

	"deliverystat/cmd/deliverystat/internal/config"
	"deliverystat/processors/exactlyonce"
)

// Build says what binary this is.
type Build struct{ Version, Revision, GoVersion string }

// Options are what a service is made of.
type Options struct {
	config.Serve
	config.Instance
	config.Listen

	Client    exactlyonce.ClientConfig
	Effective map[string]string // the settings in force, for the log and /config
	Build     Build
	Logger    *slog.Logger
}
