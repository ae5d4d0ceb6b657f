package process_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

func scan(s string, child *int) bool {
	n, err := fmt.Sscanf(s, "child %d\n", child)
	return n == 1 && err == nil
}

// gone reports whether process pid has ended; a zombie that init has yet to
// collect has ended too.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}
