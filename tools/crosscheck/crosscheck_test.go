//go:build crosscheck

package crosscheck

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/spec"
)

// both opens the demo model with the engine and with the bindings.
func both(t *testing.T) (*whisper.Engine, *bindings) {
	t.Helper()
	dir, err := native.Whisper()
	require.NoError(t, err)
	m, ok := demo.Models().Role(models.RoleStandard)
	require.True(t, ok)
	data, err := m.Main().Bytes()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "model.bin") // the bindings can only open files
	require.NoError(t, os.WriteFile(path, data, 0o600))
	b, err := openBindings(dir, path)
	require.NoError(t, err)
	t.Cleanup(b.close)
	e, err := whisper.Open(m, whisper.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, b
}

func joined(tr *asr.Transcript) string {
	var list []string
	for _, s := range tr.Segments {
		list = append(list, s.Text)
	}
	if !spec.Spaced(tr.Language) {
		return strings.Join(list, "")
	}
	return strings.Join(list, " ")
}

// TestSameText passes the whole of each clip to both as one window: greedy, one
// thread.
func TestSameText(t *testing.T) {
	e, b := both(t)
	clips, err := filepath.Glob("../../asr/whisper/testdata/*.wav")
	require.NoError(t, err)
	require.NotEmpty(t, clips)
	for _, name := range clips {
		language, _, _ := strings.Cut(filepath.Base(name), "_")
		t.Run(filepath.Base(name), func(t *testing.T) {
			pcm, err := audio.Open(context.Background(), audio.File(name), audio.Options{})
			require.NoError(t, err)
			defer pcm.Close()
			want, err := b.transcribe(pcm.Samples(0, pcm.Len()), language)
			require.NoError(t, err)
			require.NotEmpty(t, want)
			opt := asr.DefaultOptions()
			opt.Language, opt.BeamSize = language, 1
			tr, err := e.Transcribe(context.Background(), pcm, []audio.Span{{End: pcm.Len()}}, opt)
			require.NoError(t, err)
			assert.Equal(t, want, joined(tr))
		})
	}
}
