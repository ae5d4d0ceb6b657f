package service

import (
	"log/slog"

	"deliverystat/cmd/deliverystat/internal/access"
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

// Deployment is what the permissions of this replica depend on.
func (o *Options) Deployment() access.Deployment {
	d := access.Deployment{Topics: o.Topics(), Processors: o.Has(config.RoleProcessors), API: o.Has(config.RoleAPI)}
	for _, source := range o.SourceList() {
		d.Sources = append(d.Sources, source.Topic)
	}
	return d
}
