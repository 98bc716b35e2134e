package host

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ProcessorName returns the processor's name, "" if it is not reported.
var ProcessorName = sync.OnceValue(func() (name string) {
	Fields("/proc/cpuinfo", func(key, value string) {
		if key == "model name" && name == "" {
			name = value
		}
	})
	return name
})

// PeakMemory returns the peak resident bytes of a process (a number or "self").
func PeakMemory(process string) (peak int64) {
	Fields("/proc/"+process+"/status", func(key, value string) {
		if key == "VmHWM" {
			peak = Kilobytes(value) << 10
		}
	})
	return peak
}

// Fields calls f for each "key : value" line of a file under /proc.
func Fields(path string, f func(key, value string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			f(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
}

// Kilobytes returns the number of a value such as "16318 kB".
func Kilobytes(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return n
}
