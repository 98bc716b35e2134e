//go:build unix

package host

import "syscall"

// ProcessorSeconds returns the processor time of the process so far, including
// native threads and children that have exited (the decoder of compressed
// formats). On a busy machine it is more meaningful than the wall clock.
func ProcessorSeconds() float64 {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += u.Utime.Nano() + u.Stime.Nano()
		}
	}
	return float64(sum) / 1e9
}
