//go:build unix

package main

import (
	"os/exec"
	"slices"
	"syscall"

	"github.com/otograph/otograph/internal/service/state"
)

// crashSignal returns the signal of a crash in native code; 0 for other ends.
func crashSignal(exit *exec.ExitError) syscall.Signal {
	status, _ := exit.Sys().(syscall.WaitStatus)
	crashes := []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGABRT, syscall.SIGTRAP}
	if status.Signaled() && slices.Contains(crashes, status.Signal()) {
		return status.Signal()
	}
	return 0
}

// keepFilesPrivate makes new files of this process private to its user.
func keepFilesPrivate() { syscall.Umask(state.OthersBits) }
