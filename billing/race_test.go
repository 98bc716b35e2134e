//go:build !long && race

package billing

// histories is the number of random cases of a property test; the race detector
// makes the database ten times slower.
const histories = 10
