package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// MemoryLimit returns the machine's or container's bytes, 0 if unknown.
func MemoryLimit() uint64 {
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil {
		return 0
	}
	return within(os.DirFS("/"), uint64(machine.Totalram)*uint64(machine.Unit)) //nolint:unconvert // 32 bits on some systems
}
