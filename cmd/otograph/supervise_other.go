//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// crashSignal returns 0, because there is no device plug-in on this system.
func crashSignal(*exec.ExitError) syscall.Signal { return 0 }
