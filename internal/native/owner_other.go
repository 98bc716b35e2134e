//go:build !unix

package native

import "os"

// ownerOf returns the user that a file belongs to, where there are numbers for
// users.
func ownerOf(os.FileInfo) (user int, ok bool) { return 0, false }

// openToAll reports whether everybody may write to a file: here the mode, which Go
// makes up, does not tell.
func openToAll(os.FileInfo) bool { return false }
