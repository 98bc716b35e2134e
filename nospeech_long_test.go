//go:build long

package otograph_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/models/demo"
)

// TestNoTextWithoutSpeech runs all recordings without speech through both tiers
// and the cascade: noise, music, tones, things and animals. It needs
// OTOGRAPH_SHARED for most of them.
func TestNoTextWithoutSpeech(t *testing.T) {
	folders := []string{filepath.Join("testdata", "demo", "nonspeech", "*.opus")}
	if shared := os.Getenv("OTOGRAPH_SHARED"); shared != "" {
		for _, pattern := range []string{"demo/nonspeech/*", "events/*.flac", "real/event_*.flac"} {
			folders = append(folders, filepath.Join(shared, "testdata", filepath.FromSlash(pattern)))
		}
	}
	var paths []string
	for _, pattern := range folders {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		paths = append(paths, found...)
	}
	spoken := []string{"00-speech.flac", "51-speech.flac", "mix1.flac", "mix2.flac", "mix3.flac", "event_whistling.flac"}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.Size() < 1024 || slices.Contains(spoken, filepath.Base(path)) // smaller files are refused
	})
	for _, system := range []struct {
		name    string
		fast    bool
		cascade float64
	}{{"optimized", true, 0}, {"standard", false, 0}, {"cascade", true, otograph.CascadeBelow}} {
		p, err := otograph.Open(demo.Models(), otograph.Config{Cascade: &system.cascade})
		require.NoError(t, err)
		heard := 0
		for _, path := range paths {
			for _, language := range []*string{nil, new("en")} {
				opt := otograph.Options{Optimize: &system.fast, ASRLanguage: language, EnableDiarize: new(false), EnableAudioEvents: new(false)}
				res, err := p.Run(t.Context(), audio.File(path), opt)
				require.NoError(t, err, path)
				var texts []string
				for _, s := range res.Segments {
					texts = append(texts, s.Text)
				}
				assert.Empty(t, texts, "%s: %s", system.name, filepath.Base(path))
				heard += min(len(texts), 1)
			}
		}
		t.Logf("%s: %d of %d runs of %d recordings have a text", system.name, heard, 2*len(paths), len(paths))
		require.NoError(t, p.Close())
	}
}
