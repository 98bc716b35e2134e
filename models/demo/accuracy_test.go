//go:build long

package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models/demo"
)

// TestDemoAccuracy runs the pipeline over the evaluation set (voices and
// sentences that no model was trained on, with language detection) and asserts
// the accuracy targets of the demo models. OTOGRAPH_DEMO_SET names the manifest
// of another set (make_eval.py).
func TestDemoAccuracy(t *testing.T) {
	manifest := os.Getenv("OTOGRAPH_DEMO_SET")
	if manifest == "" {
		manifest = filepath.Join("..", "..", "testdata", "demo", "manifest.jsonl")
	}
	items, err := bench.Load(manifest)
	require.NoError(t, err)
	groups := groupsOf(t, manifest)
	off := false
	for tier, english := range map[string]float64{"optimized": 6, "standard": 9} {
		t.Run(tier, func(t *testing.T) {
			fast := tier == "optimized"
			report, err := bench.Run(context.Background(), bench.Config{Items: items, Systems: []bench.System{{
				Name: tier, Set: demo.Models(),
				Options: otograph.Options{Optimize: &fast, EnableDiarize: &off, EnableAudioEvents: &off},
			}}})
			require.NoError(t, err)
			require.Zero(t, report.Systems[0].Failed)
			errors := map[string]*bench.WordErrors{}
			var right, asked, late int
			var times bench.TimeErrors
			for _, item := range report.Systems[0].Items {
				if groups[item.Name] == nil {
					assert.Empty(t, item.Text, "nothing is said in %s", item.Name)
					continue
				}
				asked++
				if item.Score.Language.Reference == item.Score.Language.Hypothesis {
					right++
				}
				times.Add(*item.Score.Sentences)
				for _, g := range groups[item.Name] {
					if errors[g] == nil {
						errors[g] = &bench.WordErrors{}
					}
					errors[g].Add(*item.Score.Words)
				}
			}
			for _, off := range append(times.Starts, times.Ends...) {
				if off > 0.3 {
					late++
				}
			}
			var table strings.Builder
			for _, aim := range []struct {
				group   string
				percent float64
			}{{"en", english}, {"es", 8}, {"fr", 8}, {"pt", 8}, {"de", 8}, {"zh", 8}, {"long", 6}, {"pico:en-GB", 20}} {
				e := errors[aim.group]
				require.NotNil(t, e, aim.group)
				fmt.Fprintf(&table, "%s %.1f %% (%d of %d), ", aim.group, 100*e.Rate(), e.Errors(), e.Reference)
				assert.LessOrEqual(t, 100*e.Rate(), aim.percent, aim.group)
			}
			n := len(times.Starts) + len(times.Ends)
			t.Logf("%slanguage %d of %d, more than 0.3 s off %d of %d", table.String(), right, asked, late, n)
			assert.GreaterOrEqual(t, float64(right), 0.98*float64(asked), "languages")
			assert.LessOrEqual(t, float64(late), 0.005*float64(n), "starts and ends of sentences")
			assert.Zero(t, times.Missing, "sentences")
		})
	}
}

// groupsOf returns the error rates to which a recording contributes, by its
// file; a recording without speech has none.
func groupsOf(t *testing.T, manifest string) map[string][]string {
	data, err := os.ReadFile(manifest)
	require.NoError(t, err)
	out := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		var item struct{ File, Kind, Language, Voice string }
		require.NoError(t, json.Unmarshal([]byte(line), &item))
		switch item.Kind {
		case "short":
			out[item.File] = []string{item.Language, item.Voice}
		case "long":
			out[item.File] = []string{"long"}
		}
	}
	return out
}
