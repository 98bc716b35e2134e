//go:build !linux

package main

func notDumpable() error { return nil }
