//go:build !linux

package ort

import "testing"

// stderr skips the test: descriptors are exchanged on Linux only.
func stderr(t *testing.T, _ func()) string {
	t.Helper()
	t.Skip("needs Linux")
	return ""
}
