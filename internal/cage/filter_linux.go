//go:build linux && (amd64 || arm64)

package cage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// condition is a test of one argument of a system call, on its low 32 bits
// (and, for zero, on all 64).
type condition struct {
	arg  int
	kind conditionKind
	// values are the allowed values for among, and the bits for the other
	// tests.
	values []uint32
}

type conditionKind int

const (
	zero    conditionKind = iota // the argument is 0
	among                        // it is one of values
	without                      // it has none of the bits values[0]
	with                         // it has all of the bits values[0]
	notAll                       // it does not have all of the bits values[0]
)

// rule allows a system call when all conditions hold.
type rule struct {
	call       uintptr
	conditions []condition
}

// openFlags are the flags that are refused for opening a file: writing,
// creating, truncating, or opening as a mere path, which Landlock does not
// check.
const openFlags = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_PATH | unix.O_TMPFILE&^unix.O_DIRECTORY

// rules returns the calls that an audio decoder needs to start, load its
// libraries, read one file and write to pipes, with or without threads.
// TestFFmpegNeedsNoMore checks the list with a real ffmpeg. The most frequent
// calls come first.
func rules(script bool) []rule {
	list := []rule{
		{call: unix.SYS_READ}, {call: unix.SYS_WRITE}, {call: unix.SYS_LSEEK}, {call: unix.SYS_FUTEX},
	}
	for _, call := range plainCalls {
		list = append(list, rule{call: call})
	}
	for _, call := range legacyCalls {
		list = append(list, rule{call: call})
	}
	noWriteExec := condition{2, notAll, []uint32{unix.PROT_WRITE | unix.PROT_EXEC}}
	list = append(list,
		rule{unix.SYS_MMAP, []condition{noWriteExec}},
		rule{unix.SYS_MPROTECT, []condition{{2, without, []uint32{unix.PROT_EXEC}}}},
		rule{unix.SYS_OPENAT, []condition{{2, without, []uint32{openFlags}}}},
		rule{unix.SYS_IOCTL, []condition{{1, among, []uint32{unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ}}}},
		rule{unix.SYS_FCNTL, []condition{{1, among, []uint32{unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC}}}},
		rule{unix.SYS_PRCTL, []condition{{0, among, []uint32{unix.PR_SET_NAME, unix.PR_GET_NAME}}}},
		rule{unix.SYS_PRLIMIT64, []condition{{0, zero, nil}, {2, zero, nil}}}, // reading its own limits
		rule{unix.SYS_SCHED_GETAFFINITY, []condition{{0, zero, nil}}},
		rule{unix.SYS_GETPGID, []condition{{0, zero, nil}}},
	)
	list = append(list, legacyRules...)
	if !script {
		// Threads, no processes.
		return append(list, rule{unix.SYS_CLONE, []condition{{0, with, []uint32{unix.CLONE_VM | unix.CLONE_THREAD}}, {0, without, []uint32{newNamespaces}}}})
	}
	for _, call := range scriptCalls {
		list = append(list, rule{call: call})
	}
	return append(list, rule{unix.SYS_CLONE, []condition{{0, without, []uint32{newNamespaces}}}})
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// plainCalls are allowed with any arguments.
var plainCalls = []uintptr{
	unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_FADVISE64, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_GETDENTS64,
	unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES, unix.SYS_GETRUSAGE,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETRANDOM, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_EXECVE, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	fstatat,
}

// scriptCalls are the additional calls of an interpreter.
var scriptCalls = append([]uintptr{
	unix.SYS_WAIT4, unix.SYS_PIPE2, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETCWD, unix.SYS_GETGROUPS, unix.SYS_UMASK,
	unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_SETRLIMIT, unix.SYS_STATX,
}, legacyScriptCalls...)

// missingCalls fail as in a kernel without them; libraries then use an older
// call that is allowed.
var missingCalls = []uintptr{unix.SYS_CLONE3}

// newestCall is the highest known call. Later ones fail as in a kernel without
// them.
const newestCall = unix.SYS_FUTEX_REQUEUE

// program returns the filter.
func program(script bool) []unix.SockFilter {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return nil
	}
	const (
		deny    = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	a := assembler{
		statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 4), // seccomp_data.arch
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		answer(deny),
		statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0), // seccomp_data.nr
		jump(unix.BPF_JGE, 0x40000000, 0, 1),              // the x32 ABI, which numbers calls differently
		answer(deny),
		jump(unix.BPF_JGT, newestCall, 0, 1),
		answer(missing),
	}
	for _, r := range rules(script) {
		a.rule(r, deny)
	}
	for _, call := range missingCalls {
		a = append(a, jump(unix.BPF_JEQ, uint32(call), 0, 1), answer(missing))
	}
	return append(a, answer(deny))
}

// assembler writes a classic BPF program.
type assembler []unix.SockFilter

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func answer(action uint32) unix.SockFilter {
	return statement(unix.BPF_RET|unix.BPF_K, action)
}

// jump skips yes instructions if the test holds, no if it does not.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// rule appends instructions that test the arguments of a call and return the
// verdict.
func (a *assembler) rule(r rule, deny uint32) {
	var body assembler
	for _, c := range r.conditions {
		body = append(body, c.test(deny)...)
	}
	body = append(body, answer(unix.SECCOMP_RET_ALLOW))
	*a = append(*a, jump(unix.BPF_JEQ, uint32(r.call), 0, uint8(len(body))))
	*a = append(*a, body...)
}

// test returns instructions that deny the call unless the condition holds.
func (c condition) test(deny uint32) assembler {
	low := uint32(16 + 8*c.arg) // seccomp_data.args, little-endian
	load := statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, low)
	switch c.kind {
	case zero:
		return assembler{load, jump(unix.BPF_JEQ, 0, 1, 0), answer(deny), statement(load.Code, low+4), jump(unix.BPF_JEQ, 0, 1, 0), answer(deny)}
	case among:
		out := assembler{load}
		for i, v := range c.values {
			out = append(out, jump(unix.BPF_JEQ, v, uint8(len(c.values)-i), 0))
		}
		return append(out, answer(deny))
	case without:
		return assembler{load, jump(unix.BPF_JSET, c.values[0], 0, 1), answer(deny)}
	case with:
		return assembler{load, bits(c.values[0]), jump(unix.BPF_JEQ, c.values[0], 1, 0), answer(deny)}
	case notAll:
		return assembler{load, bits(c.values[0]), jump(unix.BPF_JEQ, c.values[0], 0, 1), answer(deny)}
	}
	panic("cage: a condition without a test")
}

// bits keeps only the given bits of the loaded value.
func bits(mask uint32) unix.SockFilter {
	return statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, mask)
}
