package cage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// statusFD receives the launcher's State, or the reason why there is no cage.
const statusFD = 4

func init() {
	if len(os.Args) != 2 || os.Args[0] != launcherName {
		return
	}
	var o order
	if json.Unmarshal([]byte(os.Args[1]), &o) != nil || o.Signature != signature {
		return
	}
	err := launch(o.Spec)
	_, _ = unix.Write(statusFD, []byte(err.Error()))
	os.Exit(125)
}

// launch turns this process into the caged program. It returns only on failure.
func launch(s Spec) error {
	// A thread's restrictions apply to the program that it executes.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	unix.CloseOnExec(statusFD)
	var in, status unix.Stat_t
	if unix.Fstat(3, &in) == nil && unix.Fstat(statusFD, &status) == nil && in.Dev == status.Dev && in.Ino == status.Ino {
		unix.CloseOnExec(3) // without input, the status pipe takes its place
	}
	// Nothing may be allocated once the filter is active.
	argv, err := syscall.SlicePtrFromStrings(append([]string{s.Bin}, s.Args...))
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(s.Env)
	if err != nil {
		return err
	}
	var state State
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	state.NoNewPrivileges = true
	state.CapabilitiesDropped = dropCapabilities()
	if err := limit(s); err != nil {
		return err
	}
	state.Limits = true
	if s.Landlock {
		if state.Landlock, err = restrictFiles(s); err != nil {
			return err
		}
	}
	filter := program(s.Script)
	state.Seccomp = filter != nil
	report, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return become(argv, envp, filter, s.Memory, report)
}

// limit sets the limits of the process except its address space, see become.
func limit(s Spec) error {
	type resource struct {
		which     int
		soft, max uint64
	}
	list := []resource{
		{unix.RLIMIT_CPU, s.CPU, s.CPU + 5}, // the soft limit distinguishes SIGXCPU from other kills
		{unix.RLIMIT_FSIZE, 0, 0},
		{unix.RLIMIT_CORE, 0, 0},
		{unix.RLIMIT_NOFILE, 64, 64},
		{unix.RLIMIT_MSGQUEUE, 0, 0},
		{unix.RLIMIT_MEMLOCK, 0, 0},
	}
	if ownUserNamespace() {
		// In a new namespace only the program's threads count; otherwise all
		// processes of the user would.
		list = append(list, resource{unix.RLIMIT_NPROC, 64, 64})
	}
	for _, r := range list {
		own := inherited(r.which, r.soft, r.max)
		if r.which == unix.RLIMIT_NOFILE && own.Cur < leastFiles {
			return fmt.Errorf("limit the decoder: it needs %d open files, and at most %d are allowed here (ulimit -n)", leastFiles, own.Cur)
		}
		if err := unix.Setrlimit(r.which, &own); err != nil {
			return fmt.Errorf("limit the decoder: %w", err)
		}
	}
	return nil
}

// leastFiles is the number of descriptors for a decoder and its libraries.
const leastFiles = 16

// inherited returns a limit that is no higher than the inherited one.
func inherited(which int, soft, hard uint64) unix.Rlimit {
	var have unix.Rlimit
	if err := unix.Getrlimit(which, &have); err == nil {
		hard = min(hard, have.Max)
	}
	return unix.Rlimit{Cur: min(soft, hard), Max: hard}
}

// ownUserNamespace reports whether no user is mapped here, see namespaces.
func ownUserNamespace() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.TrimSpace(string(text)) == ""
}

// become limits the address space, which the Go runtime may already exceed,
// activates the filter and executes the program, with nothing in between.
func become(argv, envp []*byte, filter []unix.SockFilter, memory uint64, report []byte) error {
	rlimit := inherited(unix.RLIMIT_AS, memory, memory)
	var prog unix.SockFprog
	if len(filter) > 0 {
		prog = unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	}
	if _, err := unix.Write(statusFD, report); err != nil {
		return err
	}
	if memory > 0 {
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&rlimit)), 0, 0, 0); errno != 0 {
			return fmt.Errorf(" limit the decoder's memory: %w", errno)
		}
	}
	if len(filter) > 0 {
		if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
			return fmt.Errorf(" seccomp: %w", errno)
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(argv[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	runtime.KeepAlive(filter)
	return fmt.Errorf(" execute: %w", errno)
}

// dropCapabilities keeps the program from gaining root's capabilities, except
// the right to read other users' files, which root may have been asked for.
func dropCapabilities() bool {
	if unix.Geteuid() != 0 {
		return true
	}
	for c := uintptr(0); c <= 63; c++ {
		if c == unix.CAP_DAC_READ_SEARCH {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // past the last one
		} else if err != nil {
			return false
		}
	}
	return true
}

// libraryFolders are the folders that may contain a program's libraries.
func libraryFolders(s Spec) []string {
	dirs := []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store"}
	if dir := filepath.Join(filepath.Dir(filepath.Dir(s.Bin)), "lib"); len(dir) > len("/lib") {
		dirs = append(dirs, dir)
	}
	return append(dirs, s.Libraries...)
}
