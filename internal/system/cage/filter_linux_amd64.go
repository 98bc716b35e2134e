package cage

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	fstatat   = unix.SYS_NEWFSTATAT
)

// legacyCalls are allowed calls that only the older architectures have.
var legacyCalls = []uintptr{unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_DUP2, unix.SYS_GETRLIMIT, unix.SYS_TIME, unix.SYS_ARCH_PRCTL, unix.SYS_GETPGRP}

var legacyRules = []rule{{unix.SYS_OPEN, []condition{without(1, openFlags)}}}

var legacyScriptCalls = []uintptr{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_PIPE, unix.SYS_ACCESS, unix.SYS_READLINK}
