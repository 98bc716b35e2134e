package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/host"
)

// Machine describes the machine of the measurements.
type Machine struct {
	CPU         string    `json:"cpu"`
	Features    []string  `json:"features"`     // vector instructions used by the models
	Cores       int       `json:"cores"`        // cores available to the process
	MemoryMiB   int64     `json:"memory_mib"`   // of the machine
	OS          string    `json:"os"`           // system and architecture
	Kernel      string    `json:"kernel"`       // release
	Go          string    `json:"go"`           // version of the Go runtime
	LoadAverage [3]string `json:"load_average"` // of 1, 5 and 15 minutes at the start of the run
	Time        time.Time `json:"time"`
}

// ThisMachine describes the current machine; unknown fields are empty.
func ThisMachine() Machine {
	m := Machine{CPU: host.ProcessorName(), Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Time: time.Now().UTC().Truncate(time.Second)}
	host.Fields("/proc/cpuinfo", func(key, value string) {
		if key != "flags" && key != "Features" {
			return
		}
		m.Features = m.Features[:0]
		for _, f := range strings.Fields(value) {
			switch f {
			case "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "asimddp", "sve":
				m.Features = append(m.Features, f)
			}
		}
	})
	host.Fields("/proc/meminfo", func(key, value string) {
		if key == "MemTotal" {
			m.MemoryMiB = host.Kilobytes(value) >> 10
		}
	})
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(data))
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		copy(m.LoadAverage[:], strings.Fields(string(data)))
	}
	return m
}

// resetPeak restarts the measurement of peak resident memory if the system
// supports it (Linux). It first returns free memory to the system.
func resetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // on failure the peak covers the whole process
}
