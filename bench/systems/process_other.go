//go:build !unix

package systems

import "os/exec"

// alone does nothing on systems without process groups: canceling only ends the
// program itself.
func alone(*exec.Cmd) {}
