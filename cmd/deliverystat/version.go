package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
)

// versionCommand prints what the binary is made of.
type versionCommand struct{}

func (*versionCommand) run(_ context.Context, p *process) error {
	b := readBuild()
	_, err := fmt.Fprintf(p.stdout, "deliverystat %s (revision %s)\ngo %s\ngoka %s\nsarama %s\n",
		b.version, b.revision, b.goVersion, b.goka, b.sarama)
	if err != nil {
		return fmt.Errorf("printing version: %w", err)
	}
	return nil
}

// build is what is known of the binary; "unknown" where it is not.
type build struct{ version, revision, goVersion, goka, sarama string }

func readBuild() build {
	const unknown = "unknown"
	b := build{unknown, unknown, runtime.Version(), unknown, unknown}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.version = info.Main.Version
	}
	module := func(path string) string {
		i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path })
		if i < 0 {
			return unknown
		}
		return info.Deps[i].Version
	}
	b.goka, b.sarama = module("github.com/lovoo/goka"), module("github.com/IBM/sarama")
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified && b.revision != unknown {
		b.revision += " with changes"
	}
	return b
}
