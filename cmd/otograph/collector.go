package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// startPercent makes the first garbage collection begin at 64 MB: the runtime's least
// heap is 4 MB for each 100.
const startPercent = 1600

// lateFirstCollection puts the first garbage collection off until the heap has grown
// beyond what opening models takes, most of which stays; later ones are as usual.
// GOGC in the environment wins.
func lateFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(startPercent)
	type sentinel struct{ _ *byte } // with a pointer, so that it is not allocated beside others
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// usualCollection undoes lateFirstCollection in a process that opens no models, a server:
// it would grow by what one request after the other leaves behind.
func usualCollection() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100)
	}
}
