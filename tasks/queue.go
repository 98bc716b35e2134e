package tasks

// Lanes of the queue.
const (
	laneTasks = "tasks"
	laneBatch = "batch"
)
