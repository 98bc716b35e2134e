//go:build unix

// Package processgroup starts programs in process groups of their own, so that
// signals reach them together with the processes that they start, and so that a
// terminal's signals do not reach them.
package processgroup

import (
	"os/exec"
	"syscall"
)

// Own starts a program in a new process group.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Signal sends a signal to all processes in a program's group.
func Signal(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }
