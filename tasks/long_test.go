//go:build long

package tasks

import "time"

// How much the reliability tests do in their long form.
const (
	killsInSuite = 200 // for each kind of store
	seedsInSuite = 3000
	outage       = 10 * time.Second // of the database
)
