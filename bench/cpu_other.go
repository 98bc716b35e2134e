//go:build !unix

package bench

// cpuSeconds returns 0, because this system does not report the processor time
// of children.
func cpuSeconds() float64 { return 0 }
