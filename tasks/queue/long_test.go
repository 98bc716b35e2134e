//go:build long

package queue_test

// How much the reliability tests do in their long form.
const (
	batchTasks = 24
)
