//go:build unix

package native

import (
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) (user int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// openToAll reports whether a file is world-writable.
func openToAll(info os.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }
