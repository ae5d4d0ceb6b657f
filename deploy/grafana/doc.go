// Package grafana holds the dashboards for Grafana as JSON. They are written by
// generate, a module of its own, and never by hand. It promises nothing about
// the look, which only Grafana knows; that every query is valid and has data is
// tested against a real Prometheus in e2e.
package grafana

//go:generate go -C generate run . ..
