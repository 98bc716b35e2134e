//go:build !linux

package ort

import "testing"

// stderr skips the test, because descriptors are only replaced on Linux.
func stderr(t *testing.T, _ func()) string {
	t.Helper()
	t.Skip("needs Linux")
	return ""
}
