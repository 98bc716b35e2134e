//go:build unix

package native

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the end of a command's context end its children too. They are asked,
// so that the script takes its temporary folder away.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
