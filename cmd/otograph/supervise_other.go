//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// crashSignal returns 0: there is no plug-in for devices on this system.
func crashSignal(*exec.ExitError) syscall.Signal { return 0 }
