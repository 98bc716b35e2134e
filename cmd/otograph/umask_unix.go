//go:build unix

package main

import (
	"syscall"

	"github.com/otograph/otograph/internal/state"
)

// keepFilesPrivate closes the files that this process creates to other users.
func keepFilesPrivate() { syscall.Umask(state.OthersBits) }
