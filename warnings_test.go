package otograph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/spec"
)

// otherValues are values of every option that are not its default.
var otherValues = map[string]string{
	"enable_asr": "false", "enable_diarize": "false", "enable_audio_events": "false",
	"optimize": "true", "optimize_zh": "true", "timestamp_level": `"segment"`, "asr_language": `"de"`, "asr_beam_size": "9", "asr_temperature": "0.4",
	"asr_best_of": "3", "hotwords": `["a"]`, "initial_prompt": `"a"`, "vad_threshold": "0.5", "vad_min_speech_ms": "1", "vad_min_silence_ms": "1",
	"vad_speech_pad_ms": "1", "no_speech_threshold": "0.1", "num_speakers": "2", "min_speakers": "2", "max_speakers": "2",
	"diarize_min_segment_sec": "1", "diarize_single_speaker_threshold": "0.2", "voices": "true", "audio_events_threshold": "0.5", "audio_events_classes": `["Music"]`,
}

// Every option either has a row in the table of effects or is one of the three
// that always have an effect, and every row is an option.
func TestEffectsCoverTheOptions(t *testing.T) {
	rows := map[string]bool{"enable_asr": true, "enable_diarize": true, "enable_audio_events": true}
	for name := range effects {
		rows[name] = true
	}
	for _, row := range spec.Table() {
		assert.True(t, rows[row.Name], "%s has no row", row.Name)
		assert.Contains(t, otherValues, row.Name)
		delete(rows, row.Name)
	}
	assert.Empty(t, rows, "rows without an option")
}

// Each option, alone, is warned about where what it needs is not there.
func TestWarningsOfEveryOption(t *testing.T) {
	whisper := &asr.Abilities{Beam: 8, Temperature: true, Hotwords: true, InitialPrompt: true}
	ctc := &asr.Abilities{Beam: 1 << 30, Hotwords: true}
	said := func(tier Tier, a *asr.Abilities) *transcription {
		return &transcription{Language: language{"de", 1}, Tier: tier, Transcript: &asr.Transcript{Segments: []asr.Segment{{}}}, Abilities: a}
	}
	speech := []string{
		"optimize", "optimize_zh", "timestamp_level", "asr_language", "asr_beam_size", "asr_temperature", "asr_best_of", "hotwords", "initial_prompt",
		"vad_threshold", "vad_min_speech_ms", "vad_min_silence_ms", "vad_speech_pad_ms", "no_speech_threshold",
	}
	voices := []string{"num_speakers", "min_speakers", "max_speakers", "diarize_min_segment_sec", "diarize_single_speaker_threshold"}
	tests := []struct {
		name string
		base string
		said *transcription
		want []string
	}{
		{"standard tier", `{}`, said(TierStandard, whisper), []string{"optimize", "optimize_zh", "asr_beam_size", "asr_best_of"}},
		{"standard tier, sampling", `{"asr_temperature":0.4}`, said(TierStandard, whisper), []string{"optimize", "optimize_zh", "asr_beam_size"}},
		{"standard tier without prompts", `{}`, said(TierStandard, &asr.Abilities{Beam: 20, Temperature: true, Hotwords: true}), []string{"optimize", "optimize_zh", "asr_best_of", "initial_prompt"}},
		{"CTC", `{}`, said(TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt"}},
		{"transducer", `{}`, said(TierOptimized, &asr.Abilities{Beam: 1 << 30, BeamForHotwords: true, Hotwords: true}), []string{"asr_beam_size", "asr_temperature", "asr_best_of", "initial_prompt"}},
		{"transducer with hotwords", `{"hotwords":["b"]}`, said(TierOptimized, &asr.Abilities{Beam: 1 << 30, BeamForHotwords: true, Hotwords: true}), []string{"asr_temperature", "asr_best_of", "initial_prompt"}},
		{"no search and no hotwords", `{}`, said(TierOptimized, &asr.Abilities{}), []string{"asr_beam_size", "asr_temperature", "asr_best_of", "hotwords", "initial_prompt"}},
		{"nobody speaks", `{}`, &transcription{Transcript: &asr.Transcript{}}, nil},
		{"no transcription", `{"enable_asr":false,"enable_diarize":false}`, nil, append(append([]string(nil), speech...), voices...)},
		{"no speakers", `{"enable_diarize":false}`, said(TierOptimized, ctc), append([]string{"asr_temperature", "asr_best_of", "initial_prompt"}, voices...)},
		{"known speakers", `{"num_speakers":2}`, said(TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "min_speakers", "max_speakers", "diarize_single_speaker_threshold"}},
		{"several speakers", `{"min_speakers":2}`, said(TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "diarize_single_speaker_threshold"}},
		{"no sounds", `{"enable_audio_events":false}`, said(TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "audio_events_threshold", "audio_events_classes"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var warned []string
			for _, row := range spec.Table() {
				var o Options
				require.NoError(t, json.Unmarshal([]byte(test.base), &o))
				if err := json.Unmarshal([]byte(`{"`+row.Name+`":`+otherValues[row.Name]+`}`), &o); err != nil {
					continue // not a valid combination
				}
				effective, err := o.Effective()
				if err != nil {
					continue
				}
				for _, w := range warnings(o, effective, test.said, false) {
					assert.NotEmpty(t, w.Reason)
					if w.Option == row.Name {
						warned = append(warned, row.Name)
					}
				}
			}
			assert.ElementsMatch(t, append(test.want, "voices"), warned, "the library knows no accounts")
		})
	}
}

// Words that were asked for and do not come are said, though "word" is the default.
func TestWarningsOfMissingWords(t *testing.T) {
	level := TimestampWord
	o := Options{TimestampLevel: &level, ASRBeamSize: new(5)}
	effective, err := o.Effective()
	require.NoError(t, err)
	fast := &transcription{Tier: TierOptimized, Transcript: &asr.Transcript{Segments: []asr.Segment{{}}}, Abilities: &asr.Abilities{}}
	for words, want := range map[bool]string{false: "the optimized tier returns segments without words", true: "the model does not return word times"} {
		list := warnings(o, effective, fast, words)
		require.Len(t, list, 1, "a default needs no warning")
		assert.Equal(t, spec.Warning{Option: "timestamp_level", Reason: want}, list[0])
	}
	fast.Transcript.Segments[0].Words = []asr.Word{{Text: "a"}}
	assert.Empty(t, warnings(o, effective, fast, true))
}

// TestWarningsOfHotwords names those that no recognizer can favor.
func TestWarningsOfHotwords(t *testing.T) {
	names := []string{"Belvost", `a"b`}
	many := strings.Split("a b c d e f g h i j k l", " ")
	tests := []struct {
		name      string
		tier      Tier
		abilities asr.Abilities
		powerless []string
		want      string
	}{
		{"all have", TierOptimized, asr.Abilities{Hotwords: true}, nil, ""},
		{"spelled", TierOptimized, asr.Abilities{Hotwords: true}, names, `have no effect on "Belvost", "a\"b": the model's vocabulary cannot spell them`},
		{"parts", TierStandard, asr.Abilities{Hotwords: true}, names[:1], `have hardly any effect on "Belvost": the standard tier's model does not write them in one or two tokens, and no CTC model looked for them`},
		{"many", TierOptimized, asr.Abilities{Hotwords: true}, many, `have no effect on "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" and 2 more: the model's vocabulary cannot spell them`},
		{"no ability", TierOptimized, asr.Abilities{}, names, "have no effect: the model does not support hotwords"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := Options{Hotwords: many}
			effective, err := o.Effective()
			require.NoError(t, err)
			said := &transcription{Tier: test.tier, Transcript: &asr.Transcript{Powerless: test.powerless}, Abilities: &test.abilities}
			var want []spec.Warning
			if test.want != "" {
				want = []spec.Warning{{Option: "hotwords", Reason: test.want}}
			}
			assert.Equal(t, want, warnings(o, effective, said, false))
		})
	}
}
