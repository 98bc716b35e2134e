package cage

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	fstatat   = unix.SYS_FSTATAT
)

var (
	legacyCalls       []uintptr
	legacyRules       []rule
	legacyScriptCalls []uintptr
)
