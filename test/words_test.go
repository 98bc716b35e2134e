package test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The optimized tier has words only in a service that is started with
// --optimized-words, and only for tasks at word level.
func TestOptimizedWordsOfTheService(t *testing.T) {
	t.Parallel()
	words := func(s *server, options map[string]any) (words, segments int) {
		id := s.create(upload(clip(t, 5, 6), options))
		require.Equal(t, "done", s.wait(id)["status"], s.logged())
		data, err := json.Marshal(s.result(id))
		require.NoError(t, err)
		var result struct {
			Segments []struct {
				Words []struct{ Start, End float64 }
			}
		}
		require.NoError(t, json.Unmarshal(data, &result))
		for _, segment := range result.Segments {
			words += len(segment.Words)
		}
		return words, len(result.Segments)
	}
	options := func(level string) map[string]any {
		return map[string]any{"enable_diarize": false, "enable_audio_events": false, "asr_language": "en", "timestamp_level": level}
	}
	s := serve(t, t.TempDir(), "--optimized-words").unlimited()
	n, segments := words(s, options("word"))
	assert.Positive(t, segments)
	assert.Greater(t, n, 3)
	n, segments = words(s, options("segment"))
	assert.Positive(t, segments)
	assert.Zero(t, n)
	n, segments = words(serve(t, t.TempDir()).unlimited(), options("word"))
	assert.Positive(t, segments)
	assert.Zero(t, n, "the specification's letter")
}

// German is not one of the specification's five languages of the optimized
// tier: it only runs there in a service with --optimized-languages, and at that
// tier's price.
func TestOptimizedLanguagesOfTheService(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--optimized-languages").unlimited()
	id := s.create(upload(clip(t, 5, 6), map[string]any{"enable_diarize": false, "enable_audio_events": false, "asr_language": "de"}))
	require.Equal(t, "done", s.wait(id)["status"], s.logged())
	assert.Equal(t, "zh_lite", object(s.result(id)["billing"])["mode"])
}

// A CTM lists words: it has the optimized tier's even without --words.
func TestCTMOfTheOptimizedTier(t *testing.T) {
	if testing.Short() {
		t.Skip("at length: make test-extent")
	}
	t.Parallel()
	file := filepath.Join("..", "testdata", "conversation.flac")
	out, err := exec.Command(binary, "transcribe", "-q", "--demo", "--optimize", "true", "--format", "ctm", file).Output()
	require.NoError(t, err)
	words := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, ";;") {
			assert.Len(t, strings.Fields(line), 6, line)
			words++
		}
	}
	assert.Greater(t, words, 50)
}
