//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// OwnGroup starts a program in a new process group.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// SignalGroup sends a signal to all processes in a program's group.
func SignalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }
