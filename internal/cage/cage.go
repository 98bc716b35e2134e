// Package cage starts a program that reads one hostile file: it can open files
// for reading only, and with Landlock only its libraries and its input, has no
// network, starts no process, signals nobody and is bounded in memory, processor
// time and output files.
//
// On Linux the program is started through a launcher: this very executable,
// which package cage's initialization turns into the launcher when it finds
// itself started as one. The launcher puts the limits, the Landlock domain and
// the seccomp filter on itself and then becomes the program, so every one of
// them is in force before the program's first instruction, and nothing is ever
// put on the process that starts it.
package cage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Spec describes one caged run.
type Spec struct {
	Bin  string   // absolute path of the program, links resolved
	Args []string // without the program's name
	Env  []string // the whole environment, "NAME=value"
	// Input is descriptor 3 of the program, opened for reading; nil for none.
	Input *os.File
	// Libraries are folders beside the usual ones in which the program's
	// libraries lie.
	Libraries []string

	Memory uint64 // bytes of address space
	CPU    uint64 // seconds of processor time

	// Landlock may be left out for programs that cannot run under it.
	Landlock bool
	// Script allows what an interpreter needs beside: processes and other
	// programs. They stay in the cage.
	Script bool
}

// State says what holds a program.
type State struct {
	Landlock            int  // version of the kernel's Landlock interface that is used; 0: none
	Seccomp             bool // only listed system calls are answered
	NoNewPrivileges     bool // set-user-id programs give nothing
	CapabilitiesDropped bool // root's powers are taken away; true as well when there are none
	Limits              bool // address space, processor time, file size, descriptors, core files
	Namespaces          bool // a network and System V objects of its own, and for others than root a user namespace
}

// ErrSetup is returned when the cage could not be built. The program did not run.
var ErrSetup = errors.New("cage")

// launcherName is what the launcher is called in its argument list.
const launcherName = "otograph-cage"

// Process is a caged program that is about to be started. The caller sets Cmd's
// Stdin, Stdout and Stderr, calls Start, then Cmd.Wait or Wait.
type Process struct {
	*exec.Cmd
	status *os.File // read end of the launcher's reports; nil without a launcher
	closes []*os.File
}

// started closes what only the child needs.
func (p *Process) started() {
	for _, f := range p.closes {
		f.Close()
	}
	p.closes = nil
}

// setupError is what the launcher said when it failed.
func setupError(text string) error {
	return fmt.Errorf("%w: %s", ErrSetup, strings.TrimSpace(text))
}
