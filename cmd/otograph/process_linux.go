package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// lowerPriority makes the scheduler prefer other processes to this one: nice is
// nice(1)'s value, 1 to 19. Linux stores it per thread, and a new thread
// inherits it from its creator.
func lowerPriority(nice int) error {
	for range 2 { // the second round finds threads that began during the first
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("lower the priority: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil && err != syscall.ESRCH {
				return fmt.Errorf("lower the priority: %w", err)
			}
		}
	}
	return nil
}

// notDumpable prevents programs of the same user, including the decoder, from
// opening this process's memory.
func notDumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
