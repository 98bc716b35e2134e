//go:build long

package billing

// histories is the number of random cases of a property test.
const histories = 2000
