package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports that a harness may take lie below the range from which the kernel
// serves outgoing connections: else a client that retries the port of a stopped
// server can be given that very port, and holds it or even talks to itself.
const (
	firstPort = 20000
	lastPort  = 30000
)

// FreePorts returns n distinct loopback ports that nothing listens on now.
func FreePorts(n int) ([]int, error) {
	held := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // returns at once
		if err != nil {
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return nil, errors.New("finding free ports: all of the tried ones are taken")
}
