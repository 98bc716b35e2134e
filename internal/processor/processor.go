// Package processor names the processor of the machine, for what was measured
// on it.
package processor

import (
	"os"
	"strings"
	"sync"
)

// Name returns the processor's name, "" where the system does not tell it.
var Name = sync.OnceValue(func() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return nameIn(string(info))
})

func nameIn(info string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
