//go:build !linux

package main

// lowerPriority does nothing where there is no such thing per thread.
func lowerPriority(int) error { return nil }
