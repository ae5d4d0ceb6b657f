// Package helm holds the chart, which is the only hand-written packaging for
// Kubernetes, and values to render it with. Its copies of rules and dashboard,
// its README and deploy/manifests are made by render and never edited. It
// promises that what is rendered fits the binary (tests in cmd/deliverystat) and
// the schemas of Kubernetes (.ci/chart); not that your cluster has what it asks for.
package helm

//go:generate ./render
