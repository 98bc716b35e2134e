package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
)

// saying is a recognizer that returns a function of the reference.
type saying struct {
	name string
	of   func(Item) string
}

func (s saying) Identity() string { return s.name }

func (s saying) Transcribe(_ context.Context, it Item) (*otograph.Result, Cost, error) {
	res := &otograph.Result{Segments: []otograph.Segment{{Text: s.of(it)}}}
	res.Ran.ASR = true
	return res, Cost{}, nil
}

// Systems that differ only in case are ranked by the rules of the run; slices
// and wrong words are reported.
func TestRankingByRules(t *testing.T) {
	c := Config{Seed: 1, By: []string{"condition", "language"}}
	for i := range 20 {
		it := Item{Name: string(rune('a' + i)), Language: "en", Keys: map[string]string{"condition": "clean"}}
		it.Text = new("The boat left Portland at noon.")
		if i%2 > 0 {
			it.Keys["condition"] = "noisy"
			it.Text = new("Nobody heard the ship.")
		}
		c.Items = append(c.Items, it)
	}
	for _, s := range []saying{
		{"copier", func(it Item) string { return strings.ToLower(*it.Text) }},
		{"listener", func(it Item) string { return strings.ReplaceAll(*it.Text, "Portland", "Holland") }},
		{"twin", func(it Item) string { return strings.ReplaceAll(*it.Text, "Portland", "holland") }},
	} {
		c.Systems = append(c.Systems, System{Name: s.name, Engine: s})
	}
	unknown := c
	unknown.By = []string{"Condition"}
	_, err := Run(t.Context(), unknown)
	require.EqualError(t, err, `no recording has the key "Condition", expected one of condition, language`)
	r, err := Run(t.Context(), c)
	require.NoError(t, err)

	require.Len(t, r.Orders, 1)
	assert.Equal(t, "Order by text: copier 0.00 %, listener 10.00 %, twin 10.00 %; places 2 and 3 cannot be told apart.", r.Orders[0].String())
	assert.Equal(t, "twin makes 10 errors more than copier, 1 of them in a. It makes more often: “portland → holland” 10.", r.Reason)

	c.Normalizer, c.Items[1].Text = "none", new("")
	exact, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, "copier", exact.Orders[0].Systems[2], "the case is wrong everywhere")

	require.Len(t, r.Slices, 3)
	assert.Equal(t, "condition clean (10)", r.Slices[0].String())
	assert.InDelta(t, 1.0/6, r.Slices[0].Accuracy["listener"].WordRate.Value, 1e-12)
	assert.Zero(t, r.Slices[1].Accuracy["listener"].WordRate.Value)
	assert.Equal(t, []string{"portland → holland"}, r.Systems[1].Items[0].WrongWords)

	var page bytes.Buffer
	require.NoError(t, r.WriteHTML(&page))
	assert.Contains(t, page.String(), `<span class="replaced" title="instead of portland">holland</span>`)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(data, &back))
	require.NoError(t, back.WriteHTML(io.Discard), "without the recordings")
	var table bytes.Buffer
	require.NoError(t, r.WriteTable(&table))
	assert.Contains(t, table.String(), "listener makes more word errors than copier: by 10.00 points")
}

// TestNoReasonForATie: systems with as many errors in different recordings have
// no largest difference.
func TestNoReasonForATie(t *testing.T) {
	c := Config{Items: []Item{{Name: "one.wav", Language: "en", Text: new("good day")}, {Name: "two.wav", Language: "en", Text: new("good night")}}}
	for i, name := range []string{"first", "second"} {
		wrong := c.Items[i].Name
		c.Systems = append(c.Systems, System{Name: name, Engine: saying{name, func(it Item) string {
			if it.Name == wrong {
				return "bad " + strings.Fields(*it.Text)[1]
			}
			return *it.Text
		}}})
	}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.NotEmpty(t, r.Orders)
	assert.Empty(t, r.Reason)
}

func TestPassages(t *testing.T) {
	columns := make([]column, 31)
	for i := range columns {
		columns[i] = column{"a", [][]token{{{Text: "a"}}, {{Text: "a"}}}}
	}
	list, _ := passages(columns)
	assert.Empty(t, list)
	columns[15].Systems[1] = []token{{Text: "b", Class: "replaced", Title: "a"}}
	columns[30].Systems[0] = nil
	list, cut := passages(columns)
	require.Len(t, list, 1)
	assert.Len(t, list[0], 2*aroundWrong+1)
	assert.False(t, cut)
	columns[28].Systems[0] = []token{{Text: "a", Class: "missing"}}
	list, _ = passages(columns)
	require.Len(t, list, 2)
	assert.Len(t, list[1], aroundWrong+3)
}

// A wrong word plays the line that contains it; in a long line, only the
// seconds around the word.
func TestPiecesOfRecordings(t *testing.T) {
	it := itemReport{Text: "one two\nthree\nfour five six seven", Spans: [][2]float64{{0.2, 2}, {3, 4}, {10, 50}}}
	piece := it.pieces(strings.Fields)
	assert.Equal(t, "#t=0.0,2.5", piece(-1))
	assert.Equal(t, "#t=0.0,2.5", piece(1))
	assert.Equal(t, "#t=2.5,4.5", piece(2))
	assert.Equal(t, "#t=9.5,21.5", piece(3))
	assert.Equal(t, "#t=38.5,50.5", piece(6))
	assert.Empty(t, itemReport{Text: "one two"}.pieces(strings.Fields)(1), "the times are unknown")
}

// Recordings are linked relative to the report, with escaped names.
func TestSound(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a #1?.wav")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	c := Config{RunFile: filepath.Join(folder, "out", "run.jsonl")}
	assert.Equal(t, template.URL("../a%20%231%3F.wav"), c.sound(Item{Path: path}))
	assert.Contains(t, Config{}.sound(Item{Path: path}), "file:///")
	assert.Empty(t, c.sound(Item{Path: path + "x"}), "there is no such file")
	assert.Empty(t, c.sound(Item{}))
}

// The rules name the normalizer and, if turns are scored, the collar.
func TestRulesNameNormalizerAndCollar(t *testing.T) {
	r := Report{Normalizer: "words", Collar: 0.25, Systems: []systemReport{{}}}
	assert.Equal(t, "Text normalizer: words.", r.rules())
	r.Systems[0].Accuracy.Turns = &DER{}
	assert.Equal(t, "Text normalizer: words. Turns: collar 0.25 s on both sides of the reference's borders, overlapping speech counted.", r.rules())
}
