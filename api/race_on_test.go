//go:build race

package api_test

// raceEnabled: under the race detector pools drop what they are given at random.
const raceEnabled = true
