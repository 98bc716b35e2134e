//go:build long

package test

import "time"

// The parameters of the long form; short_test.go has the suite's.
const (
	realTime     = true
	kills        = 200
	outage       = 10 * time.Second
	fleetTasks   = 1000
	fleetPause   = 10 * time.Second
	loadSeconds  = 15
	uploadBytes  = 200<<20 - 200
	corpusStride = 1
	manyWords    = 100_000
)
