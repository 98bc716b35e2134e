//go:build !unix

package host

// ProcessorSeconds returns 0, because this system does not report the processor
// time of children.
func ProcessorSeconds() float64 { return 0 }
