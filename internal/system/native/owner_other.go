//go:build !unix

package native

import "os"

// ownerOf returns the owner of a file on systems with numeric users.
func ownerOf(os.FileInfo) (user int, ok bool) { return 0, false }

// openToAll returns false: Go makes up the mode on these systems, so it can't
// show whether a file is world-writable.
func openToAll(os.FileInfo) bool { return false }
