//go:build !linux

package db

import "syscall"

// userTimeout does nothing, because only Linux has the option.
func userTimeout(_, _ string, _ syscall.RawConn) error { return nil }
