//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// TestPipesAreReadOnce: a named pipe is read like standard input, while a file
// is opened when needed.
func TestPipesAreReadOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	require.NoError(t, os.WriteFile("file", make([]byte, 100), 0o600))
	assert.Equal(t, []bool{true, true, false, false}, []bool{readOnce("-"), readOnce("pipe"), readOnce("file"), readOnce("missing")})
	in, err := expandInputs([]string{"pipe", "file"})
	require.NoError(t, err)
	assert.Equal(t, []string{"pipe", "file"}, in.files)
	go func() {
		if f, err := os.OpenFile("pipe", os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("no recording, and long enough to be one")
			f.Close()
		}
	}()
	src, done, err := source("pipe")
	require.NoError(t, err)
	defer done.Close()
	assert.Equal(t, "pipe", src.Name())
	_, err = audio.Probe(t.Context(), src, audio.Options{MinBytes: -1})
	require.ErrorIs(t, err, audio.ErrUnsupported)
	require.ErrorContains(t, err, "its content is not that of an audio or video file")
}

// TestPathsNeedNotBeUTF8: a name in another encoding reaches the command
// unchanged.
func TestPathsNeedNotBeUTF8(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "Mu\xf1oz.opus"
	require.NoError(t, os.WriteFile(name, make([]byte, 10), 0o600))
	assert.Equal(t, exitUsage, run(t.Context(), []string{"transcribe", "-o", name, name}), "the output is recognized as the input")
}

// TestFullDisk: a command that could not print everything has failed.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	defer full.Close()
	before := os.Stdout
	defer func() { os.Stdout = before }()
	os.Stdout = full
	assert.Equal(t, exitFailed, run(t.Context(), []string{"version"}))
	assert.Equal(t, exitFailed, run(t.Context(), []string{"--help"}))
	os.Stdout = before
	assert.Zero(t, run(t.Context(), []string{"version"}))
}

// TestListenOnSocket: unix:PATH listens there and replaces an abandoned
// socket, but neither an active socket nor another file.
func TestListenOnSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := listen("unix:s")
	require.NoError(t, err)
	assert.Equal(t, "unix:s", (&serveCmd{Addr: "unix:s"}).url())
	_, err = listen("unix:s")
	require.ErrorContains(t, err, "another process listens there")
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	l, err = listen("unix:s")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile("file", []byte("kept"), 0o600))
	_, err = listen("unix:file")
	require.Error(t, err)
	f, err := os.Open("file")
	require.NoError(t, err)
	defer f.Close()
	kept, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(kept))
}
