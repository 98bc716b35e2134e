package audio

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The cage is put on one operating-system thread, and the child is started from that thread: no_new_privs, the Landlock domain, the
// seccomp filter and the shrunken capability bounding set are properties of a thread and pass to its children. The thread is
// never given back to the Go scheduler. So a library can cage its child without a helper program and without caging itself.

// onCagedThread runs f on a new thread that ends with f.
func onCagedThread(f func()) {
	// Package os tries pidfds out once per process, on the thread that first needs one. In the cage the try would fail,
	// and this whole program would do without them from then on. So it is made here.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	done := make(chan struct{})
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end. While it is held here, the next goroutine gets another one.
			inner := make(chan struct{})
			go func() { defer close(inner); run() }()
			<-inner
			runtime.UnlockOSThread()
			return
		}
		f() // the thread stays locked, so it dies with this goroutine
	}
	go func() { defer close(done); run() }()
	<-done
}

// cageThread locks the calling thread up as far as the kernel lets it: it can still start bin, which can then read its libraries
// and the input, write nothing, and has no network. Landlock is left out when landlock is false.
func cageThread(bin string, input *os.File, landlock bool) (SandboxState, error) {
	var s SandboxState
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return s, fmt.Errorf("no_new_privs: %w", err)
	}
	s.NoNewPrivileges = true
	s.CapabilitiesDropped = dropCapabilities()
	if landlock {
		abi, err := restrictFiles(bin, input)
		if err != nil {
			return s, err
		}
		s.Landlock = abi
	}
	s.Seccomp = filterSystemCalls()
	return s, nil
}

// dropCapabilities keeps the child from getting root's powers. Only the right to read files of others stays, because
// root may have been asked to read one. Without root there is nothing to drop.
func dropCapabilities() bool {
	if unix.Geteuid() != 0 {
		return true
	}
	for c := uintptr(0); c <= 63; c++ {
		if c == unix.CAP_DAC_READ_SEARCH {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // beyond the last one
		} else if err != nil {
			return false
		}
	}
	return true
}

func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrictFiles puts the thread into a Landlock domain and returns the kernel's ABI version, 0 where it has no Landlock.
func restrictFiles(bin string, input *os.File) (int, error) {
	abi := landlockABI()
	if abi == 0 {
		return 0, nil
	}
	fs := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1) // everything of the first version
	attr := unix.LandlockRulesetAttr{}
	if abi >= 2 {
		fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	attr.Handled_access_fs = fs
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return 0, fmt.Errorf("landlock ruleset: %w", errno)
	}
	rules := int(fd)
	defer unix.Close(rules)

	const read, list, exec = unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.LANDLOCK_ACCESS_FS_READ_DIR, unix.LANDLOCK_ACCESS_FS_EXECUTE
	allow := func(fd int, access uint64) error {
		rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("landlock rule: %w", errno)
		}
		return nil
	}
	allowPath := func(path string, access uint64) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("landlock rule for %s: %w", path, err)
		}
		defer unix.Close(fd)
		return allow(fd, access)
	}
	libraries, interpreter := needs(bin)
	for _, dir := range libraries {
		if err := allowPath(dir, read|list); err != nil {
			return 0, err
		}
	}
	for _, file := range []string{bin, interpreter} {
		if file == "" {
			continue
		}
		if err := allowPath(file, read|exec); err != nil {
			return 0, err
		}
	}
	if err := allowPath("/etc/ld.so.cache", read); err != nil {
		return 0, err
	}
	if input != nil {
		if err := allow(int(input.Fd()), read); err != nil {
			return 0, err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	return abi, nil
}

// needs says where a program's libraries may lie and which loader it names.
func needs(bin string) (libraries []string, interpreter string) {
	libraries = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store"}
	if dir := filepath.Join(filepath.Dir(filepath.Dir(bin)), "lib"); len(dir) > len("/lib") {
		libraries = append(libraries, dir)
	}
	libraries = append(libraries, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
	f, err := elf.Open(bin)
	if err != nil {
		return libraries, ""
	}
	defer f.Close()
	if s := f.Section(".interp"); s != nil && s.Size < 4096 {
		if b, err := s.Data(); err == nil && len(b) > 1 {
			interpreter = string(b[:len(b)-1])
		}
	}
	return libraries, interpreter
}

// childAttributes: a process group of its own, which dies with the thread that started it, that is with this process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limitProcess bounds a child that has just been started.
func limitProcess(pid int, l limits) error {
	for _, r := range []struct {
		which     int
		soft, max uint64
	}{
		{unix.RLIMIT_AS, l.memory, l.memory}, {unix.RLIMIT_CPU, l.cpu, l.cpu + 5}, // the soft limit tells SIGXCPU apart from other kills
		{unix.RLIMIT_FSIZE, 0, 0}, {unix.RLIMIT_CORE, 0, 0}, {unix.RLIMIT_NOFILE, 64, 64},
	} {
		lim := unix.Rlimit{Cur: r.soft, Max: r.max}
		if err := unix.Prlimit(pid, r.which, &lim, nil); err != nil && err != unix.ESRCH {
			return fmt.Errorf("limit the decoder: %w", err)
		}
	}
	return nil
}

// inputPath is how the child names the descriptor 3: it opens the file anew, with a position of its own.
const inputPath = "/proc/self/fd/3"

// widenPipe lets the child write a megabyte ahead, so that both sides run at once for longer. It is a matter of speed only, and
// a user who has too many such pipes is refused.
func widenPipe(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
