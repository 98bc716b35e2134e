//go:build unix

package blob

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether a folder is this user's, and nobody else can write in
// it.
func private(folder fs.FileInfo) bool {
	s, ok := folder.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && folder.Mode().Perm() == 0o700
}
