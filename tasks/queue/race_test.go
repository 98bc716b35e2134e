//go:build !long && race

package queue_test

// How much the reliability tests do under the race detector, which makes the database ten times slower.
const (
	batchTasks = 8
)
