//go:build !long

package otograph_test

// The extent of the tests in the suite.
const (
	everyPair    = false // each model hears each recording
	quietMinutes = 12    // of the long recording
)
