//go:build unix

// Package processgroup starts programs in separate process groups: signals reach
// them together with the processes that they start, and a terminal's signals do
// not reach them.
package processgroup

import (
	"os/exec"
	"syscall"
)

// Own starts a program in a new process group.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Signal sends a signal to all processes in a program's group.
func Signal(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }
