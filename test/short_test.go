//go:build !long

package test

import "time"

// The suite's measure of what -tags long does at length.
const (
	realTime     = false // callbacks' pauses are looked up, not waited for
	kills        = 6
	outage       = 4 * time.Second
	fleetTasks   = 30
	fleetPause   = 0 // see TestFleet
	loadSeconds  = 3
	uploadBytes  = 20 << 20
	corpusStride = 6 // every n-th file of the corpus
	manyWords    = 100_000
)
