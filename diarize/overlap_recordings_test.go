package diarize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/vad"
)

// TestOverlappingConversations runs conversations, each beside its RTTM, with and
// without the segmenter. OTOGRAPH_OVERLAP is their folder; OTOGRAPH_SEGMENTER replaces the embedded
// segmenter.
func TestOverlappingConversations(t *testing.T) {
	folder := os.Getenv("OTOGRAPH_OVERLAP")
	if folder == "" {
		t.Skip("OTOGRAPH_OVERLAP is not set: no conversations with overlaps")
	}
	l := newListener(t)
	var model *models.Model
	if file := os.Getenv("OTOGRAPH_SEGMENTER"); file != "" {
		var err error
		model, err = library.OpenFile(models.RoleSegmenter, file)
		require.NoError(t, err)
	} else {
		model = demoModel(t, models.RoleSegmenter)
	}
	segmenter, err := networks.OpenSegmenter(model, networks.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { assert.NoError(t, segmenter.Close()) }()
	truths, err := filepath.Glob(filepath.Join(folder, "*.rttm"))
	require.NoError(t, err)
	require.NotEmpty(t, truths)
	for _, with := range []bool{false, true} {
		opt := diarize.DefaultOptions()
		if with {
			opt.Segmenter = segmenter
		}
		right, missed, confused, alarm, all := 0, 0.0, 0.0, 0.0, 0.0
		for _, truth := range truths {
			name := strings.TrimSuffix(truth, ".rttm")
			pcm := open(t, name+".flac")
			voices := speakersOf(t, truth)
			speech, err := vad.Detect(t.Context(), l.vad, pcm, vad.DefaultOptions())
			require.NoError(t, err)
			r, err := diarize.Diarize(t.Context(), l.voice, pcm, speech, opt)
			require.NoError(t, err)
			d := score(t, truth, r, 0)
			t.Logf("segmenter %t, %s: %d voices, found %d: DER %.1f %% (missed %.1f, false alarm %.1f, confusion %.1f)",
				with, filepath.Base(name), voices, len(r.Speakers), 100*d.Rate(), 100*d.Missed/d.Scored, 100*d.FalseAlarm/d.Scored, 100*d.Confusion/d.Scored)
			missed, confused, alarm, all = missed+d.Missed, confused+d.Confusion, alarm+d.FalseAlarm, all+d.Scored
			if len(r.Speakers) == voices {
				right++
			}
		}
		rate := (missed + confused + alarm) / all
		t.Logf("segmenter %t: DER %.1f %% (missed %.1f, false alarm %.1f, confusion %.1f), number of speakers right in %d of %d",
			with, 100*rate, 100*missed/all, 100*alarm/all, 100*confused/all, right, len(truths))
		if with {
			assert.LessOrEqual(t, rate, 0.09)
			assert.GreaterOrEqual(t, 12*right, 11*len(truths), "number of speakers right in fewer than 11 of 12")
		}
	}
}

// speakersOf counts the speakers of an RTTM file.
func speakersOf(t *testing.T, rttm string) int {
	t.Helper()
	f, err := os.Open(rttm)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	turns, err := bench.ReadRTTM(f)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, turn := range turns {
		names[turn.Speaker] = true
	}
	return len(names)
}
