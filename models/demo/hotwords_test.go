//go:build long

package demo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
)

// nameCounts counts the names and other words of a list of sentences: names
// spoken, recognized, and written without being spoken; other words and their
// errors.
type nameCounts struct{ said, found, invented, others, wrong int }

func (c nameCounts) String() string {
	return fmt.Sprintf("names found %d of %d, invented %d, errors in other words %d of %d", c.found, c.said, c.invented, c.wrong, c.others)
}

func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
}

// add aligns the transcript with the reference.
func (c *nameCounts) add(names []string, said, written string) {
	a, b := plainWords(said), plainWords(written)
	name := func(w string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, w) })
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0:
				d[i][j] = j
			case j == 0:
				d[i][j] = i
			default:
				d[i][j] = min(d[i-1][j], d[i][j-1]) + 1
				if same := d[i-1][j-1]; a[i-1] == b[j-1] {
					d[i][j] = min(d[i][j], same)
				} else {
					d[i][j] = min(d[i][j], same+1)
				}
			}
		}
	}
	for i, j := len(a), len(b); i > 0 || j > 0; {
		right := i > 0 && j > 0 && a[i-1] == b[j-1]
		switch {
		case i > 0 && j > 0 && (right && d[i][j] == d[i-1][j-1] || d[i][j] == d[i-1][j-1]+1):
			i, j = i-1, j-1
			switch isName := name(a[i]); {
			case isName && right:
				c.said, c.found = c.said+1, c.found+1
			case isName:
				c.said++
			case !right:
				c.wrong++
				fallthrough
			default:
				c.others++
			}
			if !right && name(b[j]) {
				c.invented++
			}
		case i > 0 && d[i][j] == d[i-1][j]+1:
			i--
			if name(a[i]) {
				c.said++
			} else {
				c.others, c.wrong = c.others+1, c.wrong+1
			}
		default:
			j--
			if name(b[j]) {
				c.invented++
			} else {
				c.wrong++
			}
		}
	}
}

// hotwordRecognizer is a set of models, the tier to measure and its beam size.
type hotwordRecognizer struct {
	name    string
	models  *models.Set
	fast    bool
	beam    int
	spotter bool // a CTC model searches for hotwords
}

// hotwordRecognizers returns the two embedded recognizers and, if
// OTOGRAPH_TRANSDUCERS names a folder, the transducers in its folders rnnt and
// tdt: alone, with and without a beam, and together with the embedded CTC
// model.
func hotwordRecognizers(t *testing.T) []hotwordRecognizer {
	list := []hotwordRecognizer{{"CTC", demo.Models(), true, 5, true}, {"Whisper", demo.Models(), false, 5, true}}
	folder := os.Getenv("OTOGRAPH_TRANSDUCERS")
	if folder == "" {
		t.Log("no transducers: OTOGRAPH_TRANSDUCERS names no folder with rnnt (icefall's layout) and tdt (NeMo's)")
		return list
	}
	for _, name := range []string{"rnnt", "tdt"} {
		m, err := library.OpenFile(models.RoleOptimized, filepath.Join(folder, name))
		require.NoError(t, err)
		m.Languages, m.Demo = []string{"en"}, true
		beside, alone := demo.Models(), demo.Models()
		beside.Models = append(beside.Models, *m)
		alone.Models = append(slices.DeleteFunc(alone.Models, func(m models.Model) bool { return m.Role == models.RoleOptimized }), *m)
		list = append(list, hotwordRecognizer{name + " greedy", alone, true, 1, false}, hotwordRecognizer{name + " beam", alone, true, 5, false},
			hotwordRecognizer{name + " and CTC", beside, true, 5, true})
	}
	return list
}

// count transcribes clips in English.
func (r hotwordRecognizer) count(t *testing.T, p *otograph.Pipeline, clips []clip, names, hotwords []string) *nameCounts {
	c := &nameCounts{}
	for _, clip := range clips {
		res, err := p.Run(context.Background(), otograph.File(clip.path), otograph.Options{
			EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: new("en"), Optimize: &r.fast, ASRBeamSize: &r.beam, Hotwords: hotwords,
		})
		require.NoError(t, err)
		var text []string
		for _, s := range res.Segments {
			text = append(text, s.Text)
		}
		c.add(names, clip.text, strings.Join(text, " "))
		if testing.Verbose() && os.Getenv("OTOGRAPH_NAMES") == "development" {
			t.Logf("%s | %s", clip.text, strings.Join(text, " "))
		}
	}
	return c
}

// TestDemoHotwords measures how much hotwords help with invented names, in
// voices that no model was trained on. Half of the hotwords are spoken in half
// of the sentences. OTOGRAPH_NAMES=development uses the other set of names, for
// choosing settings, and logs the transcripts.
func TestDemoHotwords(t *testing.T) {
	set := &heldOutNames
	if os.Getenv("OTOGRAPH_NAMES") == "development" {
		set = &developmentNames
	}
	named, plain := set.record(t, t.TempDir())
	items, err := bench.Load(filepath.Join("..", "..", "testdata", "demo", "manifest.jsonl"))
	require.NoError(t, err)
	var evaluation []clip
	for _, item := range items {
		if item.Language == "en" && strings.HasPrefix(filepath.Base(item.Path), "en_") {
			evaluation = append(evaluation, clip{item.Path, *item.Text})
		}
	}
	require.NotEmpty(t, evaluation)
	for _, r := range hotwordRecognizers(t) {
		t.Run(r.name, func(t *testing.T) {
			p, err := otograph.Open(r.models, otograph.Config{Cascade: new(0.0)}) // one open recognizer at a time
			require.NoError(t, err)
			defer func() { assert.NoError(t, p.Close()) }()
			counts := map[string]*nameCounts{}
			evaluation := evaluation
			if r.name != "CTC" { // it takes longer
				evaluation = evaluation[:len(evaluation)/4]
			}
			for how, words := range map[string][]string{"without": nil, "with": set.hotwords()} {
				for kind, clips := range map[string][]clip{"names": named, "no names": plain, "evaluation": evaluation} {
					c := r.count(t, p, clips, set.hotwords(), words)
					counts[kind+" "+how] = c
					t.Logf("%s, %s hotwords: %v", kind, how, c)
				}
			}
			with, without := counts["names with"], counts["names without"]
			if r.spotter {
				assert.GreaterOrEqual(t, with.found, without.found+3)
			}
			assert.LessOrEqual(t, 2*with.invented, with.found, "few names are mistaken for others")
			assert.LessOrEqual(t, counts["no names with"].invented, len(plain)/50, "names are hardly ever invented")
			assert.Zero(t, counts["evaluation with"].invented, "nor in the evaluation set")
			for _, kind := range []string{"names", "no names", "evaluation"} {
				with, without := counts[kind+" with"], counts[kind+" without"]
				assert.LessOrEqual(t, with.wrong, without.wrong+with.others/40, "the other words of %s", kind)
			}
		})
	}
}
