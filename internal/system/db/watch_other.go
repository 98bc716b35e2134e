//go:build !linux

package db

import "context"

// watch does nothing: callers poll.
func watch(context.Context, string, chan<- struct{}) error { return nil }
