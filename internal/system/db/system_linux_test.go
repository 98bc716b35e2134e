package db_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestSQLiteNotifiesOtherProcesses: a second handle stands for the process. It
// is notified of each change, only on its channel.
func TestSQLiteNotifiesOtherProcesses(t *testing.T) {
	path := dbtest.SQLitePath(t)
	here, there := dbtest.Open(t, path, db.Options{}), dbtest.Open(t, path, db.Options{})
	woken, other := there.Subscribe(t.Context(), "tasks"), there.Subscribe(t.Context(), "progress")
	deaf := dbtest.Open(t, path, db.Options{NoListen: true}).Subscribe(t.Context(), "tasks")
	for range 3 {
		here.Notify(t.Context(), "tasks")
		select {
		case <-woken:
		case <-time.After(10 * time.Second):
			t.Fatal("not notified")
		}
	}
	assert.Empty(t, other)
	assert.Empty(t, deaf)
}
