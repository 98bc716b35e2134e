//go:build !unix

package processgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Own does nothing on systems without process groups.
func Own(*exec.Cmd) {}

// Signal kills the program alone on systems without process groups.
func Signal(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
