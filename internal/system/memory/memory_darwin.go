package memory

import "golang.org/x/sys/unix"

// Limit returns the machine's memory in bytes, 0 if it is unknown.
func Limit() uint64 {
	size, _ := unix.SysctlUint64("hw.memsize")
	return size
}
