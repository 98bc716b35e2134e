package blob

import "io/fs"

// private reports false: modes do not tell here whose a folder is, so copies
// that killed processes left behind stay.
func private(fs.FileInfo) bool { return false }
