//go:build !unix

package host

// ProcessorSeconds returns 0: the system does not report children's time.
func ProcessorSeconds() float64 { return 0 }
