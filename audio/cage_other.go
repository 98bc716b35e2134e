//go:build !linux

package audio

import "os"

const inputPath = "/dev/fd/3"

func widenPipe(*os.File) {}

// awaitExit cannot wait without taking the child's end here; the group is killed
// at the clock alone.
func awaitExit(int) bool { return false }
