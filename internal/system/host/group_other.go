//go:build !unix

package host

import (
	"os"
	"os/exec"
	"syscall"
)

// OwnGroup does nothing on systems without process groups.
func OwnGroup(*exec.Cmd) {}

// SignalGroup kills the program alone on systems without process groups.
func SignalGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
