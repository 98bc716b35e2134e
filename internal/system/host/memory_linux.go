package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// MemoryLimit returns the bytes of memory of the machine or container, else 0.
func MemoryLimit() uint64 {
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil {
		return 0
	}
	return within(os.DirFS("/"), uint64(machine.Totalram)*uint64(machine.Unit)) //nolint:unconvert // 32 bits on some systems
}
