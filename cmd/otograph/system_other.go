//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// crashSignal returns 0, because there is no device plug-in on this system.
func crashSignal(*exec.ExitError) syscall.Signal { return 0 }

// keepFilesPrivate does nothing: files get the permissions of their folder.
func keepFilesPrivate() {}
