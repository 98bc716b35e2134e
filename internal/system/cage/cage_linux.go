package cage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// order is the launcher's only argument.
type order struct {
	Spec      Spec
	Signature string // always signature, which distinguishes an order from other arguments
}

const signature = "otograph cage 1"

// Command prepares a caged run.
func Command(s Spec) (*Process, error) {
	given := order{Spec: s, Signature: signature}
	given.Spec.Input = nil
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &Process{status: statusR, reports: statusW}
	self := "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			statusR.Close()
			statusW.Close()
			return nil, err
		}
	}
	p.Cmd = &exec.Cmd{Path: self, Args: []string{launcherName, string(text)}, Env: s.Env}
	input := cmp.Or(s.Input, statusW) // descriptor 3 must exist; the launcher closes this one
	p.ExtraFiles = []*os.File{input, statusW}
	// A separate process group that dies with the thread that started it.
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces()}
	return p, nil
}

// noNamespaces is set once the kernel or the machine's policy has refused them.
var noNamespaces atomic.Bool

// namespaces returns the flags of a program's namespaces. Users other than root
// need a user namespace, into which no user is mapped.
func namespaces() uintptr {
	if noNamespaces.Load() {
		return 0
	}
	flags := uintptr(unix.CLONE_NEWNET | unix.CLONE_NEWIPC)
	if os.Geteuid() != 0 {
		flags |= unix.CLONE_NEWUSER
	}
	return flags
}

// Start starts the program and returns its restrictions once it runs. The error
// matches ErrSetup if the cage could not be built; then nothing ran. The
// calling thread must live as long as the program: see runtime.LockOSThread.
func (p *Process) Start() (State, error) {
	defer p.status.Close()
	err := p.Cmd.Start()
	if err != nil && p.SysProcAttr.Cloneflags != 0 {
		noNamespaces.Store(true)
		again := &exec.Cmd{Path: p.Path, Args: p.Args, Env: p.Env, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, ExtraFiles: p.ExtraFiles}
		again.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		p.Cmd = again
		err = p.Cmd.Start()
	}
	p.reports.Close()
	if err != nil {
		return State{}, errors.Join(ErrSetup, err)
	}
	text, err := io.ReadAll(io.LimitReader(p.status, 1<<16))
	var s State
	if err != nil || json.Unmarshal(text, &s) != nil {
		p.Kill()
		_ = p.Wait()
		reason := string(text)
		reason = strings.TrimSpace(reason[strings.LastIndexByte(reason, '}')+1:]) // the text after the report, if any
		return State{}, fmt.Errorf("%w: %s", ErrSetup, cmp.Or(reason, "the launcher died"))
	}
	s.Namespaces = p.SysProcAttr.Cloneflags != 0
	return s, nil
}
