// Package board holds the live board: one HTML page without any dependency,
// served at / by package api. The page reads the public API only; it makes no
// request to any other host, and shows counts as not current when it cannot prove
// that they are.
package board

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"slices"
)

//go:embed index.html
var page []byte

// Page returns the page.
func Page() []byte { return slices.Clone(page) }

// Policy returns the Content-Security-Policy of the page: its own script and
// style, by hash, requests to its own origin, and nothing else.
func Policy() string {
	return "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; script-src '" + hashOf("script") + "'; style-src '" + hashOf("style") + "'"
}

// hashOf returns the hash of the page's one element of this name, as a policy
// names it.
func hashOf(element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	content, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(content)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
