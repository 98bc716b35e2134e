//go:build !long && !race

package queue_test

// How much the reliability tests do in the suite.
const (
	batchTasks = 24
)
