//go:build real

package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/spec"
)

// TestRealFinals compares live sessions with the recordings of people in
// testdata/real, with published models of both tiers. Models that are not in
// $OTOGRAPH_REAL_MODELS (.cache/models) are skipped.
func TestRealFinals(t *testing.T) {
	dir := os.Getenv("OTOGRAPH_REAL_MODELS")
	if dir == "" {
		dir = "../.cache/models"
	}
	for tier, file := range map[string]string{"standard": "whisper-base-q8_0*/ggml-*base-q8_0*.bin", "optimized": "moonshine-tiny-en"} {
		t.Run(tier, func(t *testing.T) {
			found, err := filepath.Glob(filepath.Join(dir, file))
			if err != nil || len(found) == 0 {
				t.Skipf("%s is missing in %s: %v", file, dir, err)
			}
			path := found[0]
			role := models.RoleStandard
			if tier == "optimized" {
				role = models.RoleOptimized
			}
			set, err := library.Load{Files: map[models.Role]string{role: path}, Fallback: published.Models()}.Open()
			require.NoError(t, err)
			p, err := otograph.Open(set, demoConfig)
			require.NoError(t, err)
			defer func() { assert.NoError(t, p.Close()) }()
			list, err := filepath.Glob("../testdata/real/*.*")
			require.NoError(t, err)
			words, wrong, kept, partial, finals := 0, 0, 0, 0, 0
			for _, path := range list {
				name := filepath.Base(path)
				switch ext := filepath.Ext(name); {
				case ext != ".flac" && ext != ".mp3":
					continue
				case tier == "optimized" && !strings.Contains(name, "_en") && !strings.HasPrefix(name, "nospeech"):
					continue
				}
				opt := tiers()[tier]
				if tier == "optimized" {
					opt.ASRLanguage = new("en")
				}
				pcm := decoded(t, path)
				s, err := Open(t.Context(), p, Options{Options: opt})
				require.NoError(t, err)
				events, _ := play(t, s, pcm, pieces(4000))
				n := checkFinals(t, p, s, opt, pcm, events[spec.LiveFinal])
				if strings.HasPrefix(name, "nospeech") {
					wrong += n
				}
				words += n
				kept += checkGrowth(t, events[spec.LivePartial], events[spec.LiveFinal])
				partial += len(events[spec.LivePartial])
				finals += len(events[spec.LiveFinal])
				t.Logf("%s: %d words", name, n)
			}
			t.Logf("%d words in %d finals, %d partials; %d finals keep words of a partial", words, finals, partial, kept)
			assert.Greater(t, words, 100)
			assert.LessOrEqual(t, wrong, 3, "words without speech, all of them in jazz")
		})
	}
}
