//go:build unix

package main

import (
	"syscall"

	"github.com/otograph/otograph/internal/service/state"
)

// keepFilesPrivate makes new files of this process private to its user.
func keepFilesPrivate() { syscall.Umask(state.OthersBits) }
