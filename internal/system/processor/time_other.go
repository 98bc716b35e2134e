//go:build !unix

package processor

// Seconds returns 0, because this system does not report the processor
// time of children.
func Seconds() float64 { return 0 }
