//go:build !unix

package bench

// CPUSeconds returns 0, because this system does not report the processor time
// of children.
func CPUSeconds() float64 { return 0 }
