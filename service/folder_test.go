package service

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/state"
	"github.com/otograph/otograph/internal/test/dbtest"
)

// idle is an engine without work.
type idle struct{ Engine }

func (idle) ModelSet() string { return "idle" }

// TestWithoutFolder: a service and a worker without a folder leave the working
// directory alone, even if it looks like the folder of a service.
func TestWithoutFolder(t *testing.T) {
	c := Config{Database: dbtest.PostgresSource(t), Files: "file://" + t.TempDir(), Engine: idle{}, Ops: true}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir(state.MetricsFolder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state.MetricsFolder, "foreign.prom"), []byte("foreign_total 1\n"), 0o600))
	s, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer s.Close()
	answer := httptest.NewRecorder()
	s.OpsHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.True(t, bytes.Contains(text, []byte("otograph_build_info")))
	assert.False(t, bytes.Contains(text, []byte("foreign")))

	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error)
	go func() { worked <- Work(ctx, c) }()
	require.Eventually(t, func() bool { // Work has begun once it is in the list of workers
		now, err := s.state.Tasks.Queue().Overview(t.Context())
		require.NoError(t, err)
		return len(now.Workers) == 1
	}, 10*time.Second, 10*time.Millisecond)
	files, err := filepath.Glob(filepath.Join(state.MetricsFolder, "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(state.MetricsFolder, "foreign.prom")}, files)
	stop()
	assert.NoError(t, <-worked)
}

// TestFolderIsClosed: Open closes a folder that other users can open, or
// refuses it.
func TestFolderIsClosed(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o755))
	s, err := Open(t.Context(), Config{Folder: folder})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	info, err := os.Stat(folder)
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(folder, "letter.txt"), nil, 0o600))
	require.NoError(t, os.Chmod(folder, 0o755))
	_, err = Open(t.Context(), Config{Folder: folder})
	assert.ErrorIs(t, err, state.ErrOpenFolder)
}
