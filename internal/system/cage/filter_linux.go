//go:build linux && (amd64 || arm64)

package cage

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule allows a system call when all conditions hold.
type rule struct {
	call       uintptr
	conditions []condition
}

// allowed returns rules for calls with any arguments.
func allowed(calls ...uintptr) (list []rule) {
	for _, call := range calls {
		list = append(list, rule{call: call})
	}
	return list
}

// openFlags are refused for opening a file: writing, or opening as a mere path,
// which Landlock does not check.
const openFlags = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_PATH | unix.O_TMPFILE&^unix.O_DIRECTORY

// rules returns the calls that an audio decoder needs to start, load its
// libraries, read one file and write to pipes, with or without threads.
// TestFFmpegNeedsNoMore checks the list with a real ffmpeg.
func rules(script bool) []rule {
	list := slices.Concat(allowed(plainCalls...), allowed(legacyCalls...), []rule{
		{unix.SYS_MMAP, []condition{notAll(2, unix.PROT_WRITE|unix.PROT_EXEC)}},
		{unix.SYS_MPROTECT, []condition{without(2, unix.PROT_EXEC)}},
		{unix.SYS_OPENAT, []condition{without(2, openFlags)}},
		{unix.SYS_IOCTL, []condition{among(1, unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ)}},
		{unix.SYS_FCNTL, []condition{among(1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC)}},
		{unix.SYS_PRCTL, []condition{among(0, unix.PR_SET_NAME, unix.PR_GET_NAME)}},
		{unix.SYS_PRLIMIT64, []condition{zero(0), zero(2)}}, // only reads its own limits
		{unix.SYS_SCHED_GETAFFINITY, []condition{zero(0)}},
		{unix.SYS_GETPGID, []condition{zero(0)}},
	}, legacyRules)
	clone := rule{unix.SYS_CLONE, []condition{without(0, newNamespaces)}}
	if script {
		return append(append(list, allowed(scriptCalls...)...), clone)
	}
	clone.conditions = append(clone.conditions, with(0, unix.CLONE_VM|unix.CLONE_THREAD)) // threads, no processes
	return append(list, clone)
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// plainCalls are allowed with any arguments, the most frequent ones first.
var plainCalls = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_LSEEK, unix.SYS_FUTEX,
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

// missingCalls fail as in an older kernel; libraries then use an allowed call.
var missingCalls = []uintptr{unix.SYS_CLONE3}

// newestCall is the last known call; later ones fail as in an older kernel.
const newestCall = unix.SYS_FUTEX_REQUEUE

const (
	deny    = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

func program(script bool) []unix.SockFilter {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return nil
	}
	a := assembler{
		load(4), // seccomp_data.arch
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		answer(deny),
		load(0),                              // seccomp_data.nr
		jump(unix.BPF_JGE, 0x40000000, 0, 1), // the x32 ABI, which numbers calls differently
		answer(deny),
		jump(unix.BPF_JGT, newestCall, 0, 1),
		answer(missing),
	}
	for _, r := range rules(script) {
		a.rule(r)
	}
	for _, call := range missingCalls {
		a = append(a, jump(unix.BPF_JEQ, uint32(call), 0, 1), answer(missing))
	}
	return append(a, answer(deny))
}

// assembler writes a classic BPF program.
type assembler []unix.SockFilter

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func answer(action uint32) unix.SockFilter { return statement(unix.BPF_RET|unix.BPF_K, action) }

// jump skips yes instructions if the test holds, no if it does not.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// load loads 32 bits of seccomp_data.
func load(at uint32) unix.SockFilter { return statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }

// rule appends instructions that return the verdict on a call.
func (a *assembler) rule(r rule) {
	body := append(slices.Concat(r.conditions...), answer(unix.SECCOMP_RET_ALLOW))
	*a = append(append(*a, jump(unix.BPF_JEQ, uint32(r.call), 0, uint8(len(body)))), body...)
}

// condition holds instructions that deny a call unless an argument fits.
type condition []unix.SockFilter

// low is the position of the low 32 bits of an argument in seccomp_data.
func low(arg uint32) uint32 { return 16 + 8*arg }

// zero requires that all 64 bits are 0; other conditions test the low 32.
func zero(arg uint32) condition {
	return condition{load(low(arg)), jump(unix.BPF_JEQ, 0, 1, 0), answer(deny), load(low(arg) + 4), jump(unix.BPF_JEQ, 0, 1, 0), answer(deny)}
}

// among requires that the argument is one of the values.
func among(arg uint32, values ...uint32) condition {
	out := condition{load(low(arg))}
	for i, v := range values {
		out = append(out, jump(unix.BPF_JEQ, v, uint8(len(values)-i), 0))
	}
	return append(out, answer(deny))
}

// without requires that the argument has none of the bits.
func without(arg, bits uint32) condition {
	return condition{load(low(arg)), jump(unix.BPF_JSET, bits, 0, 1), answer(deny)}
}

// with requires that the argument has all of the bits.
func with(arg, bits uint32) condition {
	return condition{load(low(arg)), masked(bits), jump(unix.BPF_JEQ, bits, 1, 0), answer(deny)}
}

// notAll requires that the argument does not have all of the bits.
func notAll(arg, bits uint32) condition {
	return condition{load(low(arg)), masked(bits), jump(unix.BPF_JEQ, bits, 0, 1), answer(deny)}
}

// masked keeps only the given bits of the loaded value.
func masked(bits uint32) unix.SockFilter {
	return statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, bits)
}
