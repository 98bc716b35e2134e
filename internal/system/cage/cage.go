// Package cage starts a program that reads one hostile file. The program can
// open files only for reading and, with Landlock, only its libraries and its
// input. It has no network, can't start processes or send signals, and its
// memory, processor time and output files are limited.
//
// On Linux the program is started through a launcher: the current executable,
// if the executable was started as a launcher, which package cage checks at its
// initialization. The launcher applies limits, Landlock domain and seccomp
// filter to itself and executes the program. All are in force before the
// program's first instruction, and the starting process is never restricted.
package cage

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/otograph/otograph/internal/system/host"
)

// Spec describes one caged run.
type Spec struct {
	Bin  string   // absolute path of the program, links resolved
	Args []string // without the program's name
	Env  []string // the complete environment, "NAME=value"
	// Input is descriptor 3 of the program, opened for reading; nil for none.
	Input *os.File
	// Libraries are further folders that contain the program's libraries.
	Libraries []string

	Memory uint64 // bytes of address space
	CPU    uint64 // seconds of processor time

	// Landlock may be disabled for programs that can't run under it.
	Landlock bool
	// Script also allows an interpreter's calls: caged processes.
	Script bool
}

// State describes the restrictions of a program.
type State struct {
	Landlock            int  // version of the kernel's Landlock interface in use; 0: none
	Seccomp             bool // only listed system calls are allowed
	NoNewPrivileges     bool // set-user-id programs gain no privileges
	CapabilitiesDropped bool // root's capabilities are dropped; also true if there are none
	Limits              bool // address space, processor time, file size, descriptors, core files
	Namespaces          bool // separate network and System V objects and, unless root, a user namespace
}

// ErrSetup is returned if the cage could not be built. The program did not run.
var ErrSetup = errors.New("cage")

// launcherName is the launcher's name in its argument list.
const launcherName = "otograph-cage"

// Process is a caged program that has not been started yet. The caller sets
// Cmd's Stdin, Stdout and Stderr, calls Start, then Cmd.Wait or Wait.
type Process struct {
	*exec.Cmd
	// status and reports are the pipe of the launcher's reports, nil without.
	status, reports *os.File
}

// Kill kills the program and every process that it started.
func (p *Process) Kill() { _ = host.SignalGroup(p.Process.Pid, syscall.SIGKILL) }
