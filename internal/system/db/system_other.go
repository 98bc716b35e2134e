//go:build !linux

package db

import (
	"context"
	"syscall"
)

// userTimeout does nothing, because only Linux has the option.
func userTimeout(_, _ string, _ syscall.RawConn) error { return nil }

// watch does nothing: callers poll.
func watch(context.Context, string, chan<- struct{}) error { return nil }
