package main

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/spec"
)

// A run that ends before any sound leaves no file, so that the next one may have
// its name.
func TestSavedWithoutSound(t *testing.T) {
	t.Chdir(t.TempDir())
	s, err := newSaved("a")
	require.NoError(t, err)
	require.NoError(t, s.close())
	assert.NoFileExists(t, "a.wav")
	s, err = newSaved("a")
	require.NoError(t, err)
	require.NoError(t, s.write([]float32{0.5}))
	require.NoError(t, s.finish(&otograph.Result{}))
	assert.FileExists(t, "a.wav")
	assert.FileExists(t, "a.json")
}

// A full disk is one error, which finish repeats.
func TestSavedOnAFullDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	s := &saved{name: "a", file: f, out: bufio.NewWriter(f)}
	err = s.write(make([]float32, 1<<14))
	require.ErrorContains(t, err, "no space")
	assert.Same(t, err, s.finish(&otograph.Result{}))
}

// TestSpeechIsNoSound prints sounds other than the speech that the text has.
func TestSpeechIsNoSound(t *testing.T) {
	var out strings.Builder
	for _, class := range []string{"Speech", "Dog"} {
		event := live.Event{Kind: spec.LiveSound, End: 2, Class: class, Confidence: 0.9}
		require.NoError(t, writeText(&out, lineOf(event), textStyle{}))
	}
	assert.Equal(t, "0:00.0 – 0:02.0  sound  [Dog 90 %]\n", out.String())
}
