package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// startPercent makes the first garbage collection begin at 64 MB: the runtime's
// minimum heap is 4 MB per 100 percent.
const startPercent = 1600

// lateFirstCollection delays the first garbage collection until the heap
// exceeds the memory for opening models, which mostly remains in use; later
// collections are as usual. GOGC in the environment takes precedence.
func lateFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(startPercent)
	type sentinel struct{ _ *byte } // contains a pointer, so that it is not allocated together with others
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// usualCollection reverts lateFirstCollection in a server, which opens no
// models: otherwise the garbage of successive requests would accumulate.
func usualCollection() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100)
	}
}
