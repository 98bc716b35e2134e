//go:build !long && race

package billing

// histories is how many random cases a property test runs; the race detector makes the database ten times slower.
const histories = 10
