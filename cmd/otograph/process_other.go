//go:build !linux

package main

// lowerPriority does nothing on systems without a priority per thread.
func lowerPriority(int) error { return nil }

func notDumpable() error { return nil }
