package audio

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/cage"
)

// TestGroupEndsWithItsLeader checks that a decoder's processes end with it,
// that run does not wait for a process that holds its pipes, and that all
// processes end at the deadline. Only a script may start processes.
func TestGroupEndsWithItsLeader(t *testing.T) {
	if Sandbox().Limits == false {
		t.Skip("processes are told apart on Linux only")
	}
	for name, tt := range map[string]struct {
		script string
		wall   time.Duration
		want   error
	}{
		"the leader leaves": {"(while :; do read -r x < /dev/zero || :; done) &\necho left\n", time.Hour, nil},
		"the clock":         {"(while :; do :; done) &\necho left\nwait\n", 3 * time.Second, errWallClock},
		"a deaf child":      {"trap '' TERM HUP INT; (trap '' TERM HUP INT; while :; do :; done) &\necho left\nwait\n", 3 * time.Second, errWallClock},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ffmpeg")
			require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+tt.script), 0o755)) //nolint:gosec // a program
			var out string
			_, err := caged{cage.Spec{Bin: path, Memory: childMemory, CPU: 60}, tt.wall}.run(t.Context(), func(s string) { t.Log(s) }, func(r io.Reader) error {
				b, err := io.ReadAll(r)
				out = string(b)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					err = nil
				}
				return err
			})
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, "left\n", out)
			require.Eventually(t, func() bool { return len(running(t, path)) == 0 }, 20*time.Second, time.Millisecond, "something of the group is left")
		})
	}
}

// running lists the processes whose command line names path.
func running(t *testing.T, path string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && strings.Contains(string(text), path) {
			found = append(found, e.Name())
		}
	}
	return found
}
