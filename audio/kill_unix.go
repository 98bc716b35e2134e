//go:build unix

package audio

import "syscall"

// killGroup ends the child and whatever it may have started.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
