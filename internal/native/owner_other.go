//go:build !unix

package native

import "os"

// ownerOf returns the owner of a file on systems with numeric users.
func ownerOf(os.FileInfo) (user int, ok bool) { return 0, false }

// openToAll reports whether a file is world-writable. The mode can't show it
// here, because Go makes it up.
func openToAll(os.FileInfo) bool { return false }
