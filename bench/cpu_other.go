//go:build !unix

package bench

// CPUSeconds is 0: the system does not tell the processor time of children.
func CPUSeconds() float64 { return 0 }
