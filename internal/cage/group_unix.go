//go:build unix && !linux

package cage

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a program in a new process group, so that it can be killed
// with its children.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the program and every process that it started.
func (p *Process) Kill() { _ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) }
