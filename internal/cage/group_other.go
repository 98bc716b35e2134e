//go:build !unix

package cage

import "os/exec"

func ownGroup(*exec.Cmd) {}

// Kill kills the program.
func (p *Process) Kill() { _ = p.Process.Kill() }
