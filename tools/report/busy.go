package main

import (
	"os"
	"strconv"
	"strings"
)

// busySeconds returns the processor time used by the whole machine since its
// start, in seconds, including time taken by its host. It returns false if the
// system does not report it.
func busySeconds() (float64, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	return busyOf(string(text))
}

// busyOf adds up the first line of /proc/stat (man 5 proc_stat): user, nice,
// system, irq, softirq and steal, without idle and iowait, in hundredths of a
// second. The user time already includes guests.
func busyOf(stat string) (float64, bool) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, false
	}
	sum := 0.0
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, false
		}
		sum += ticks
	}
	return sum / 100, true
}
