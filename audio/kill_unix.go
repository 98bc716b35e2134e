//go:build unix

package audio

import "syscall"

// killGroup kills the child and every process that it started.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
