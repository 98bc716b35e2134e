package blob

import "io/fs"

// private returns false, because file modes do not reveal a folder's owner
// here. Copies of killed processes stay.
func private(fs.FileInfo) bool { return false }
