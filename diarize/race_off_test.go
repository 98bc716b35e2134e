//go:build !race

package diarize

const raceEnabled = false
