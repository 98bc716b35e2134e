//go:build !long

package tasks

// How much the reliability tests do in the suite.
const (
	killsInSuite = 15 // for each kind of store
	seedsInSuite = 40
)
