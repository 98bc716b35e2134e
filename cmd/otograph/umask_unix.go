//go:build unix

package main

import "syscall"

// keepFilesPrivate closes the files that this process creates to other users.
func keepFilesPrivate() { syscall.Umask(othersBits) }
