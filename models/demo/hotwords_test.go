//go:build long

package demo_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models/demo"
)

// saidNames are invented names that are in no training text. So are otherNames,
// which are given as hotwords but never said.
var (
	saidNames = strings.Fields("Belindor Kastovan Merrigold Tolvaney Dranwick Ossmere Farindel Quellby " +
		"Harvonna Lisbrook Pellandra Rostavik Velmora Wendrick Zandorf Brimholt")
	otherNames = strings.Fields("Caldorin Norwella Trelmont Gavistan Orrindale Sabrook Maldovan Fenwora " +
		"Kestrand Ildemar Pondery Ulvester Halbrecht Jorvanna Testory Wessling")
	nameFrames = []string{
		"Please call %s tomorrow morning.", "I have an appointment with %s today.", "%s would like a cup of coffee.",
		"Where is the office of %s?", "My friend %s is at home today.", "Can you send the letter to %s?",
	}
	plainFrames = []string{
		"Please call the office tomorrow morning.", "I have an appointment with the doctor today.", "We would like a cup of coffee.",
		"Where is the train station?", "My friend is at home today.", "Can you send the letter to my sister?",
	}
	unseenVoices = []string{"f4", "m6", "Andrea", "pedro", "Michael", "marcelo"}
)

// nameCounts are the words of a list of sentences: names said, found among
// those, and written where they were not said, other words and the errors in
// them.
type nameCounts struct{ said, found, invented, others, wrong int }

func (c nameCounts) String() string {
	return fmt.Sprintf("names found %d of %d, invented %d, errors in other words %d of %d", c.found, c.said, c.invented, c.wrong, c.others)
}

func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
}

// add aligns the transcript with the reference.
func (c *nameCounts) add(said, written string) {
	a, b := plainWords(said), plainWords(written)
	name := func(w string) bool {
		return slices.ContainsFunc(append(slices.Clone(saidNames), otherNames...), func(n string) bool { return strings.EqualFold(n, w) })
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

// TestDemoHotwords measures how much hotwords help the two demo recognizers
// with invented names, in voices that no model was trained on (synthesized by
// espeak-ng). Half of the hotwords are said in half of the sentences.
func TestDemoHotwords(t *testing.T) {
	espeak, err := exec.LookPath("espeak-ng")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	type clip struct{ path, text string }
	var named, plain []clip
	evaluation := map[string][]clip{}
	items, err := bench.Load(filepath.Join("..", "..", "testdata", "demo", "manifest.jsonl"))
	require.NoError(t, err)
	for _, item := range items {
		if name := filepath.Base(item.Path); item.Language == "en" && strings.HasPrefix(name, "en_") {
			evaluation["CTC"] = append(evaluation["CTC"], clip{item.Path, *item.Text})
			if len(evaluation["CTC"])%4 == 0 { // it takes longer
				evaluation["Whisper"] = append(evaluation["Whisper"], clip{item.Path, *item.Text})
			}
		}
	}
	require.NotEmpty(t, evaluation["Whisper"])
	for i := range 2 * len(saidNames) {
		name := saidNames[i%len(saidNames)]
		for kind, frame := range []string{nameFrames[i%len(nameFrames)], plainFrames[i%len(plainFrames)]} {
			text := strings.ReplaceAll(frame, "%s", name)
			path := filepath.Join(dir, fmt.Sprintf("%d-%d.wav", i, kind))
			voice := "en-us+" + unseenVoices[(i+i/len(saidNames))%len(unseenVoices)]
			require.NoError(t, exec.Command(espeak, "-v", voice, "-s", "145", "-w", path, text).Run())
			if kind == 0 {
				named = append(named, clip{path, text})
			} else {
				plain = append(plain, clip{path, text})
			}
		}
	}
	p, err := otograph.Open(demo.Models(), otograph.WithCascade(0)) // one recognizer at a time
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	for tier, fast := range map[string]bool{"CTC": true, "Whisper": false} {
		t.Run(tier, func(t *testing.T) {
			counts := map[string]*nameCounts{}
			for how, words := range map[string][]string{"without": nil, "with": append(slices.Clone(saidNames), otherNames...)} {
				for kind, clips := range map[string][]clip{"names": named, "no names": plain, "evaluation": evaluation[tier]} {
					c := &nameCounts{}
					counts[kind+" "+how] = c
					for _, clip := range clips {
						res, err := p.Run(context.Background(), otograph.File(clip.path), otograph.Options{
							EnableDiarize: new(false), EnableAudioEvents: new(false), ASRLanguage: new("en"), Optimize: &fast, Hotwords: words,
						})
						require.NoError(t, err)
						var text []string
						for _, s := range res.Segments {
							text = append(text, s.Text)
						}
						c.add(clip.text, strings.Join(text, " "))
					}
					t.Logf("%s, %s hotwords: %v", kind, how, c)
				}
			}
			assert.GreaterOrEqual(t, counts["names with"].found, counts["names without"].found+3)
			assert.LessOrEqual(t, counts["names with"].invented, len(named)/20, "few names are taken for others")
			assert.Zero(t, counts["no names with"].invented+counts["evaluation with"].invented, "names are not invented")
			for _, kind := range []string{"names", "no names", "evaluation"} {
				with, without := counts[kind+" with"], counts[kind+" without"]
				assert.LessOrEqual(t, with.wrong, without.wrong+with.others/40, "the other words of %s", kind)
			}
		})
	}
}
