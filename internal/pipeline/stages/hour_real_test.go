//go:build real

package stages_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models/published"
	"github.com/otograph/otograph/spec"
)

// TestCostOfSpeakers prints the processor time of the speakers of
// $OTOGRAPH_RECORDING, a long recording with an RTTM file beside it, with the
// default models and the turns of the file as its sentences.
func TestCostOfSpeakers(t *testing.T) {
	path := os.Getenv("OTOGRAPH_RECORDING")
	if path == "" {
		t.Skip("OTOGRAPH_RECORDING is not set: no long recording")
	}
	f, err := os.Open(path[:strings.LastIndex(path, ".")] + ".rttm")
	require.NoError(t, err)
	turns, err := bench.ReadRTTM(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	text := &stages.Transcription{Transcript: &asr.Transcript{}}
	for _, turn := range turns {
		text.Transcript.Segments = append(text.Transcript.Segments, asr.Segment{Start: turn.Start, End: turn.End})
	}
	opt, err := spec.Options{}.Effective()
	require.NoError(t, err)
	s := &stages.Stages{Engines: engines.New(published.Models(), engines.Options{Cores: 1, Logger: slog.Default()}), Options: opt, Cores: 1, Gate: semaphore.NewWeighted(1), Log: slog.Default()}
	defer s.Engines.Close()
	pcm, err := audio.Open(t.Context(), audio.File(path), audio.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, pcm.Close()) }()
	speech, err := s.DetectSpeech(t.Context(), pcm)
	require.NoError(t, err)
	start := host.ProcessorSeconds()
	voices, err := s.Embed(t.Context(), pcm, speech, false)
	require.NoError(t, err)
	embedded := host.ProcessorSeconds()
	r, err := s.Cluster(t.Context(), voices, speech, text)
	require.NoError(t, err)
	end := host.ProcessorSeconds()
	t.Logf("%.0f s, speech %.0f s, %d windows, %d speakers: segmentation and vectors %.1f s, clustering with %d sentences %.1f s of processor time", pcm.Duration(),
		stages.Seconds(speech.Spans), len(voices.Windows), len(r.Speakers), embedded-start, len(turns), end-embedded)
}
