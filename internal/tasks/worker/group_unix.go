//go:build unix

package worker

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's signals from a child.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
