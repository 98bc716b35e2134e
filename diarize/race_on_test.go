//go:build race

package diarize

// raceEnabled shrinks the large cases, which the race detector slows down.
const raceEnabled = true
