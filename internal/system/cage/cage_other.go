//go:build !linux

package cage

import (
	"os"
	"os/exec"

	"github.com/otograph/otograph/internal/system/host"
)

// Command returns the program, uncaged on systems other than Linux.
func Command(s Spec) (*Process, error) {
	cmd := exec.Command(s.Bin, s.Args...)
	cmd.Env = s.Env
	host.OwnGroup(cmd)
	if s.Input != nil {
		cmd.ExtraFiles = []*os.File{s.Input}
	}
	return &Process{Cmd: cmd}, nil
}

// Start starts the program.
func (p *Process) Start() (State, error) { return State{}, p.Cmd.Start() }
