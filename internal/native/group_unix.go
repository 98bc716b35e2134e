//go:build unix

package native

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the context of a command also stop its children. They get
// SIGTERM, so that the script can remove its temporary folder.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
