package host

import "golang.org/x/sys/unix"

// MemoryLimit returns the machine's memory in bytes, 0 if it is unknown.
func MemoryLimit() uint64 {
	size, _ := unix.SysctlUint64("hw.memsize")
	return size
}
