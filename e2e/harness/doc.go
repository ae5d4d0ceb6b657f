// Package harness runs the behaviours of processorstest against the real
// service: several processes of the binary on a broker, told by flags and asked
// over HTTP.
//
// It needs nothing of the service but its contract: commands, flags, HTTP and
// topics.
package harness
