//go:build !linux

package db

import "syscall"

// userTimeout does nothing: the option is Linux's.
func userTimeout(_, _ string, _ syscall.RawConn) error { return nil }
