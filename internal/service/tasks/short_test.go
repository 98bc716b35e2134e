//go:build !long

package tasks_test

// chargesAMonth is the length of TestUsageOfAYear.
const chargesAMonth = 400
