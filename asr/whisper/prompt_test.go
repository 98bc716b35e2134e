package whisper

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
)

// The demo model was not trained with prompts, so it is the worst case: with
// these it wrote "mon month." or nothing at all.
func TestPromptLosesNoSpeech(t *testing.T) {
	e := openDemo(t)
	for _, c := range few(1, clips[:3]...) {
		pcm := read(t, c.name)
		for _, prompt := range []string{"Hello.", "Otograph, Kubernetes, PostgreSQL"} {
			o := asr.DefaultOptions()
			o.Language, o.InitialPrompt = c.language, prompt
			tr, err := e.Transcribe(context.Background(), pcm, c.speech(), o)
			require.NoError(t, err)
			require.Len(t, tr.Segments, 1, "%s, %q", c.name, prompt)
			assert.Equal(t, c.text, tr.Segments[0].Text, "%q", prompt)
			assert.Equal(t, 1, tr.Stats.Unprompted)
		}
	}
}

// A model marked as not taking prompts gets none, and decodes once.
func TestModelWithoutPrompts(t *testing.T) {
	m := demoModel(t)
	m.NoPrompts = true
	e := openModel(t, m)
	assert.False(t, e.Abilities().InitialPrompt)
	o := asr.DefaultOptions()
	o.Language, o.InitialPrompt = "en", "Hello."
	tr, err := e.Transcribe(context.Background(), read(t, clips[0].name), clips[0].speech(), o)
	require.NoError(t, err)
	assert.Equal(t, clips[0].text, tr.Segments[0].Text)
	assert.Equal(t, 1, tr.Stats.EncoderPasses)
}

func TestPromptHarms(t *testing.T) {
	text := func(s string, logProb float64) attempt {
		return attempt{tokens: make([]token, 3), text: s, avgLogProb: logProb}
	}
	looped := text("and so on and so on", -0.1)
	looped.looped = true
	for name, test := range map[string]struct {
		prompted, plain attempt
		harms           bool
	}{
		"nothing":                          {attempt{}, text("Good morning.", -0.5), true},
		"nothing, and nothing":             {attempt{}, attempt{}, false},
		"a loop":                           {looped, text("Good morning.", -0.5), true},
		"a loop, and nothing":              {looped, attempt{}, false},
		"a few letters":                    {text("Good.", -0.1), text("Good morning.", -0.5), true},
		"less likely":                      {text("Good moaning.", -0.6), text("Good morning.", -0.5), true},
		"words of the prompt, and nothing": {text("Acme Corporation, Acme corporation", -0.8), attempt{}, true},
		"a part of the prompt, and a loop": {text("我们讨论人工", -0.7), looped, true},
		"a sure word of the prompt":        {text("Acme.", -0.2), attempt{}, false},
		"other words, and nothing":         {text("Acme Company", -0.8), attempt{}, false},
		"likelier, in another style":       {text("good morning", -0.3), text("Good morning.", -0.5), false},
		"the plain text is the worse":      {text("Good morning.", -0.9), text("Good morning.", -1.2), false},
	} {
		assert.Equal(t, test.harms, promptHarms("Welcome to Acme Corporation. 今天我们讨论人工智能。", test.prompted, test.plain), name)
	}
}
