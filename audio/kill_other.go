//go:build !unix

package audio

import "os"

// killGroup kills the child.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
