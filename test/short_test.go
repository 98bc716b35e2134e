//go:build !long

package test

import "time"

// The suite's parameters; long_test.go has the larger ones of -tags long.
const (
	realTime     = false // the pauses of callbacks are read from the database, not waited for
	kills        = 6
	outage       = 4 * time.Second
	fleetTasks   = 30
	fleetPause   = 0 // see TestFleet
	loadSeconds  = 3
	uploadBytes  = 20 << 20
	corpusStride = 6 // every n-th file of the corpus
	manyWords    = 100_000
)
