//go:build !linux && !darwin

package host

// MemoryLimit returns 0: the memory is unknown here.
func MemoryLimit() uint64 { return 0 }
