package otograph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// A text is found in its recording, word by word, in order. Numbers written as
// digits get a time, unspoken words get none, and speech that is not
// in the text is reported.
func TestAlign(t *testing.T) {
	p := shared(t)
	text := strings.NewReplacer("four thousand two hundred", "4200", "How about Monday?", "", "the invoice tomorrow", "the hedgehog invoice tomorrow").Replace(spoken)
	done := 0.0
	a, err := p.Align(t.Context(), otograph.File(conversation), text, otograph.AlignOptions{Progress: func(now, total float64) {
		assert.GreaterOrEqual(t, now, done)
		assert.LessOrEqual(t, now, total+1e-6)
		done = now
	}})
	require.NoError(t, err)
	assert.Positive(t, done)
	assert.Equal(t, "en", a.Language)
	assert.Equal(t, 60.43, a.AudioDuration)
	require.Len(t, a.Words, len(strings.Fields(text)))
	assert.True(t, a.Fits())
	assert.Greater(t, a.Score, 0.9)
	at := 0.0
	for _, w := range a.Words {
		if strings.Contains(w.Text, "hedgehog") {
			assert.True(t, w.Missing)
			continue
		}
		assert.False(t, w.Missing, w.Text)
		assert.Equal(t, strings.Contains(w.Text, "4200"), w.Wild, "%s: the number alone has no letters to find", w.Text)
		assert.GreaterOrEqual(t, w.Start, at-1e-9)
		assert.Greater(t, w.End, w.Start)
		at = w.Start
	}
	require.Len(t, a.Extra, 1)
	assert.Equal(t, "How about Monday?", a.Extra[0].Text)

	wrong, err := p.Align(t.Context(), otograph.File(conversation), "Fish cannot wear purple umbrellas because hedgehogs juggle", otograph.AlignOptions{Language: "en"})
	require.ErrorIs(t, err, otograph.ErrMisfit)
	assert.ErrorContains(t, err, conversation)
	assert.False(t, wrong.Fits())
	assert.Less(t, wrong.Score, 0.1)

	part, err := p.AlignWords(t.Context(), otograph.File(conversation), align.Split("I am fine, thank you."), otograph.AlignOptions{Language: "en"})
	require.NoError(t, err)
	assert.True(t, part.Fits(), "a text for a part of the recording")
	assert.Less(t, part.Words[4].End-part.Words[0].Start, 3.0, "its words stay together")
}

// TestAlignLongTextWithShortRecording: the words of a short recording, and no
// others, are aligned wherever they are in a long text; its numbers get no
// time. A text without these words does not fit.
func TestAlignLongTextWithShortRecording(t *testing.T) {
	p := shared(t)
	line := "It will be sunny tomorrow at three fifteen."
	other := func(from, to int) (lines []string) {
		for k := range to - from {
			lines = append(lines, fmt.Sprintf("Line number %d of the other text is as long as it will be, and says nothing.", from+k))
		}
		return lines
	}
	for _, c := range []struct{ before, after int }{{61, 0}, {0, 61}, {30, 31}, {900, 600}} {
		text := strings.Join(slices.Concat(other(0, c.before), []string{line}, other(c.before, c.before+c.after)), "\n")
		a, err := p.Align(t.Context(), otograph.File("testdata/demo/short/en_01.flac"), text, otograph.AlignOptions{Language: "en"})
		require.NoError(t, err, "%v", c)
		var found []string
		for _, w := range a.Words {
			if !w.Missing {
				found = append(found, w.Text)
			}
		}
		assert.Equal(t, line, strings.Join(found, " "), "%v", c)
	}
	_, err := p.Align(t.Context(), otograph.File("testdata/demo/short/en_01.flac"), strings.Join(other(0, 61), "\n"), otograph.AlignOptions{Language: "en"})
	require.ErrorIs(t, err, otograph.ErrMisfit)
}

func TestAlignRefusals(t *testing.T) {
	p := open(t, demo.Models())
	_, err := p.Align(t.Context(), otograph.File(conversation), " \n", otograph.AlignOptions{})
	require.ErrorIs(t, err, otograph.ErrNoText)
	_, err = p.Align(t.Context(), otograph.File(conversation), "ciao", otograph.AlignOptions{Language: "it"})
	require.ErrorIs(t, err, models.ErrMissing)
	assert.ErrorContains(t, err, `"it"`)
	_, err = p.Align(t.Context(), otograph.File(conversation), "a", otograph.AlignOptions{Language: "klingon"})
	require.ErrorIs(t, err, otograph.ErrOptions)
	_, err = p.Align(t.Context(), otograph.File("missing.wav"), "a", otograph.AlignOptions{Language: "en"})
	require.Error(t, err)
	require.NoError(t, p.Close())
	_, err = p.Align(t.Context(), otograph.File(conversation), "a", otograph.AlignOptions{})
	require.ErrorIs(t, err, otograph.ErrClosed)
}

// A transducer that transcribes a language has no CTC output: another model of
// the language aligns, and without one the error states the reason.
func TestAlignBesideTransducer(t *testing.T) {
	set := demo.Models()
	set.Models = append(set.Models, models.Model{
		Role: models.RoleOptimized, Name: "my-transducer", Contract: models.ContractNeMoTransducer, Languages: []string{"en"},
	})
	m, ok := set.OptimizedFor("en")
	require.True(t, ok)
	require.Equal(t, "my-transducer", m.Name, "it transcribes")
	p := open(t, set)
	a, err := p.Align(t.Context(), excerpt(t), "Good morning, how are you today?", otograph.AlignOptions{Language: "en"})
	require.NoError(t, err)
	assert.True(t, a.Fits())

	set.Models = slices.DeleteFunc(set.Models, func(m models.Model) bool { return m.Role == models.RoleOptimized && m.Demo })
	p = open(t, set)
	for _, language := range []string{"en", ""} {
		_, err = p.Align(t.Context(), excerpt(t), "Good morning", otograph.AlignOptions{Language: language})
		require.ErrorIs(t, err, models.ErrMissing)
		require.ErrorContains(t, err, "alignment needs a model with a CTC output: model my-transducer (nemo-transducer), which transcribes the language \"en\", has none; `otograph models list --role optimized` lists published ones")
	}
}
