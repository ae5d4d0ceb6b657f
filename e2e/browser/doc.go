// Package browser drives a real Chromium for the tests of the board.
//
// It promises a browser that ends with the test, one page at a time, and
// accessibility checks by axe-core, which npm fetches once into e2e/.cache. It
// needs Chromium, npm and, for Korean text, a font that has it.
package browser
