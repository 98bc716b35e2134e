//go:build !long && !race

package billing

// histories is how many random cases a property test runs.
const histories = 30
