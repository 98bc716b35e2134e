//go:build unix

package systems

import (
	"os/exec"
	"syscall"
)

// alone puts a program into a process group, so that its children end with it.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
