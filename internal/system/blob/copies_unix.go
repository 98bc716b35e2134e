//go:build unix

package blob

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether only this user can write to a folder.
func private(folder fs.FileInfo) bool {
	s, ok := folder.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && folder.Mode().Perm() == 0o700
}
