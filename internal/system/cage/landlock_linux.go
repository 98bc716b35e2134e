package cage

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handled returns all access rights that this version of Landlock can restrict.
func handled(abi int) unix.LandlockRulesetAttr {
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
	return attr
}

// restrictFiles puts the calling thread into a Landlock domain and returns the
// version of the interface, or 0 if the kernel has no Landlock.
func restrictFiles(s Spec) (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	abi := int(version)
	if errno != 0 || abi == 0 {
		return 0, nil
	}
	attr := handled(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return 0, fmt.Errorf("landlock ruleset: %w", errno)
	}
	rules := ruleset(fd)
	defer unix.Close(int(rules))

	const read, list, exec = unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.LANDLOCK_ACCESS_FS_READ_DIR, unix.LANDLOCK_ACCESS_FS_EXECUTE
	for _, dir := range libraryFolders(s) {
		if err := rules.allowPath(dir, read|list); err != nil {
			return 0, err
		}
	}
	for _, file := range []string{s.Bin, interpreter(s.Bin)} {
		if file == "" {
			continue
		}
		if err := rules.allowPath(file, read|exec); err != nil {
			return 0, err
		}
	}
	if err := rules.allowPath("/etc/ld.so.cache", read); err != nil {
		return 0, err
	}
	var input unix.Stat_t
	if unix.Fstat(3, &input) == nil && input.Mode&unix.S_IFMT == unix.S_IFREG {
		// A file in memory needs no rule, and cannot have one.
		if err := rules.allow(3, read); err != nil && !errors.Is(err, unix.EBADFD) {
			return 0, err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	return abi, nil
}

// ruleset is the descriptor of a Landlock ruleset.
type ruleset int

func (r ruleset) allow(fd int, access uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock rule: %w", errno)
	}
	return nil
}

// allowPath adds a rule for a path, unless the program can't reach it anyway.
func (r ruleset) allowPath(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil
		}
		return fmt.Errorf("landlock rule for %s: %w", path, err)
	}
	defer unix.Close(fd)
	return r.allow(fd, access)
}

// interpreter returns the program's loader, or "" if it names none.
func interpreter(bin string) string {
	f, err := elf.Open(bin)
	if err != nil {
		return ""
	}
	defer f.Close()
	if s := f.Section(".interp"); s != nil && s.Size < 4096 {
		if b, err := s.Data(); err == nil && len(b) > 1 {
			return string(b[:len(b)-1])
		}
	}
	return ""
}
