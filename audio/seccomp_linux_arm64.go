package audio

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

var legacyCalls = []uintptr{unix.SYS_KEXEC_FILE_LOAD}
