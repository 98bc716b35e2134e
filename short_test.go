//go:build !long

package otograph_test

// everyPair: each model hears each recording in TestCountsRepair.
const everyPair = false
