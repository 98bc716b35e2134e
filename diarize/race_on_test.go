//go:build race

package diarize

// raceEnabled shrinks the large cases: the detector multiplies their time.
const raceEnabled = true
