//go:build unix

package bench

import "syscall"

// CPUSeconds is the processor time of the process so far, native threads and
// children that have ended (the decoder of compressed formats) included. On a busy
// machine it tells more than the clock.
func CPUSeconds() float64 {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += u.Utime.Nano() + u.Stime.Nano()
		}
	}
	return float64(sum) / 1e9
}
