package db_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// TestDeletedRowsLeaveTheFile checks that deleted rows can no longer be read
// from the database's file.
func TestDeletedRowsLeaveTheFile(t *testing.T) {
	file := filepath.Join(dbtest.Dir(t), "secrets.db")
	d := dbtest.Open(t, file, db.Options{})
	require.NoError(t, d.Migrate(t.Context()))
	secret := bytes.Repeat([]byte("kept secret "), 20)
	exec(t, d, "INSERT INTO secrets (name, value, created_at) VALUES ('x', '"+string(secret)+"', 1)")
	require.NoError(t, d.Close())
	require.True(t, contains(t, file, secret))
	d = dbtest.Open(t, file, db.Options{})
	exec(t, d, "DELETE FROM secrets WHERE name = 'x'")
	require.NoError(t, d.Close())
	assert.False(t, contains(t, file, secret))
}

// contains reports whether a file holds text.
func contains(t *testing.T, file string, text []byte) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return bytes.Contains(content, text)
}
