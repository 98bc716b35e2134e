//go:build !unix

package systems

import "os/exec"

// alone does nothing where processes have no groups: canceling ends the program alone.
func alone(*exec.Cmd) {}
