package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// lowerPriority makes the scheduler prefer other processes to this one: nice is
// what nice(1) takes, 1 to 19. Linux keeps the number per thread, and a new
// thread has that of the one that made it.
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
