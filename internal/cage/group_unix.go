//go:build unix && !linux

package cage

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a program and whatever it starts into a group that can be killed.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
