//go:build !long

package tasks

import "time"

// How much the reliability tests do in the suite.
const (
	killsInSuite = 15 // for each kind of store
	seedsInSuite = 40
	outage       = 1500 * time.Millisecond // of the database
)
