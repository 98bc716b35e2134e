package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
)

// TestOneLinePerSound: a sound detected under several names is one line, the
// most specific name first. A subclass that lasts longer than the class, and an
// unrelated class, get separate lines. The output of a demonstration is marked.
func TestOneLinePerSound(t *testing.T) {
	res := &otograph.Result{Ran: otograph.Capabilities{ASR: true, AudioEvents: true}, AudioEvents: []otograph.AudioEvent{
		{Start: 0, End: 60, Class: "Music", Confidence: 0.99},
		{Start: 0, End: 60, Class: "Musical instrument", Confidence: 0.98},
		{Start: 0, End: 0.7, Class: "Harp", Confidence: 0.46},
		{Start: 2, End: 59, Class: "Piano", Confidence: 0.9},
		{Start: 4, End: 4.5, Class: "Harp", Confidence: 0.6},
		{Start: 5, End: 9, Class: "Speech", Confidence: 1},
		{Start: 20, End: 30, Class: "Guitar", Confidence: 0.7},
		{Start: 40, End: 41.5, Class: "Dog", Confidence: 0.8},
		{Start: 40, End: 41.5, Class: "Door", Confidence: 0.85},
		{Start: 50, End: 50.4, Class: "Knock", Confidence: 0.33},
		{Start: 50, End: 50.6, Class: "no class of ours", Confidence: 0.6},
		{Start: 59, End: 60, Class: "Silence", Confidence: 0.9},
	}}
	printed := func() []string {
		var out bytes.Buffer
		require.NoError(t, writeText(&out, res, textStyle{}))
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	want := []string{
		"0:00.0 – 1:00.0  sound  [Piano 90 %, Musical instrument 98 %, Music 99 %]",
		"0:20.0 – 0:30.0  sound  [Guitar 70 %]",
		"0:40.0 – 0:41.5  sound  [Dog 80 %, Door 85 %]",
		"0:50.0 – 0:50.6  sound  [no class of ours 60 %]",
		"0:50.0 – 0:50.4  sound  [Knock 33 %]",
	}
	assert.Equal(t, want, printed())
	assert.Contains(t, summary("a.wav", res, 0), " · 5 sounds", "as many as are printed")
	var out bytes.Buffer
	require.NoError(t, writeJSON(&out, voicedResult{result: res}))
	assert.Contains(t, out.String(), `"Knock"`, "never out of JSON")
}
