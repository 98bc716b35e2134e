// Package processor returns the name of the machine's processor, for
// measurements.
package processor

import (
	"os"
	"strings"
	"sync"
)

// Name returns the processor's name, "" if the system does not report it.
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
