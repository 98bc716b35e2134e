//go:build !unix

package main

// keepFilesPrivate does nothing: files get the permissions of their folder.
func keepFilesPrivate() {}
