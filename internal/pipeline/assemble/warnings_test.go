package assemble

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
)

// otherValues holds a value other than the default for every option.
var otherValues = map[string]string{
	"enable_asr": "false", "enable_diarize": "false", "enable_audio_events": "false", "audio_track": "2",
	"optimize": "true", "optimize_zh": "true", "timestamp_level": `"segment"`, "asr_language": `"de"`, "asr_beam_size": "9", "asr_temperature": "0.4",
	"asr_best_of": "3", "hotwords": `["a"]`, "initial_prompt": `"a"`, "vad_threshold": "0.5", "vad_min_speech_ms": "1", "vad_min_silence_ms": "1",
	"vad_speech_pad_ms": "1", "no_speech_threshold": "0.1", "num_speakers": "2", "min_speakers": "2", "max_speakers": "2",
	"diarize_min_segment_sec": "1", "diarize_single_speaker_threshold": "0.2", "voices": "true", "audio_events_threshold": "0.5", "audio_events_classes": `["Music"]`,
}

// Every option is either in the table of effects or one of the four options
// that always have an effect, and every row of the table is an option.
func TestEffectsCoverTheOptions(t *testing.T) {
	rows := map[string]bool{"enable_asr": true, "enable_diarize": true, "enable_audio_events": true, "audio_track": true}
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

// Each option causes a warning on its own if its requirement is missing.
func TestWarningsOfEveryOption(t *testing.T) {
	whisper := &asr.Abilities{Beam: 8, Temperature: true, Hotwords: true, InitialPrompt: true}
	ctc := &asr.Abilities{Beam: 1 << 30, Hotwords: true}
	said := func(tier spec.Tier, a *asr.Abilities) *stages.Transcription {
		return &stages.Transcription{Language: stages.Language{Code: "de", Probability: 1}, Tier: tier, Transcript: &asr.Transcript{Segments: []asr.Segment{{}}}, Abilities: a}
	}
	speech := []string{
		"optimize", "optimize_zh", "timestamp_level", "asr_language", "asr_beam_size", "asr_temperature", "asr_best_of", "hotwords", "initial_prompt",
		"vad_threshold", "vad_min_speech_ms", "vad_min_silence_ms", "vad_speech_pad_ms", "no_speech_threshold",
	}
	voices := []string{"num_speakers", "min_speakers", "max_speakers", "diarize_min_segment_sec", "diarize_single_speaker_threshold"}
	tests := []struct {
		name string
		base string
		said *stages.Transcription
		want []string
	}{
		{"standard tier", `{}`, said(spec.TierStandard, whisper), []string{"optimize", "optimize_zh", "asr_beam_size", "asr_best_of"}},
		{"standard tier, sampling", `{"asr_temperature":0.4}`, said(spec.TierStandard, whisper), []string{"optimize", "optimize_zh", "asr_beam_size"}},
		{"standard tier without prompts", `{}`, said(spec.TierStandard, &asr.Abilities{Beam: 20, Temperature: true, Hotwords: true}), []string{"optimize", "optimize_zh", "asr_best_of", "initial_prompt"}},
		{"CTC", `{}`, said(spec.TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt"}},
		{"transducer", `{}`, said(spec.TierOptimized, &asr.Abilities{Beam: 1 << 30, BeamForHotwords: true, Hotwords: true}), []string{"asr_beam_size", "asr_temperature", "asr_best_of", "initial_prompt"}},
		{"transducer with hotwords", `{"hotwords":["b"]}`, said(spec.TierOptimized, &asr.Abilities{Beam: 1 << 30, BeamForHotwords: true, Hotwords: true}), []string{"asr_temperature", "asr_best_of", "initial_prompt"}},
		{"no search and no hotwords", `{}`, said(spec.TierOptimized, &asr.Abilities{}), []string{"asr_beam_size", "asr_temperature", "asr_best_of", "hotwords", "initial_prompt"}},
		{"nobody speaks", `{}`, &stages.Transcription{Transcript: &asr.Transcript{}}, nil},
		{"no transcription", `{"enable_asr":false,"enable_diarize":false}`, nil, append(append([]string(nil), speech...), voices...)},
		{"no speakers", `{"enable_diarize":false}`, said(spec.TierOptimized, ctc), append([]string{"asr_temperature", "asr_best_of", "initial_prompt"}, voices...)},
		{"known speakers", `{"num_speakers":2}`, said(spec.TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "min_speakers", "max_speakers", "diarize_single_speaker_threshold"}},
		{"several speakers", `{"min_speakers":2}`, said(spec.TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "diarize_single_speaker_threshold"}},
		{"no sounds", `{"enable_audio_events":false}`, said(spec.TierOptimized, ctc), []string{"asr_temperature", "asr_best_of", "initial_prompt", "audio_events_threshold", "audio_events_classes"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var warned []string
			for _, row := range spec.Table() {
				var o spec.Options
				require.NoError(t, json.Unmarshal([]byte(test.base), &o))
				if err := json.Unmarshal([]byte(`{"`+row.Name+`":`+otherValues[row.Name]+`}`), &o); err != nil {
					continue // not a valid combination
				}
				effective, err := o.Effective()
				if err != nil {
					continue
				}
				for _, w := range Warnings(o, effective, test.said, false) {
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

// A result without the requested words has a warning, even though "word" is the
// default.
func TestWarningsOfMissingWords(t *testing.T) {
	level := spec.TimestampWord
	o := spec.Options{TimestampLevel: &level, ASRBeamSize: new(5)}
	effective, err := o.Effective()
	require.NoError(t, err)
	fast := &stages.Transcription{Tier: spec.TierOptimized, Transcript: &asr.Transcript{Segments: []asr.Segment{{}}}, Abilities: &asr.Abilities{}}
	for words, want := range map[bool]string{false: "the optimized tier returns segments without words", true: "the model does not return word times"} {
		list := Warnings(o, effective, fast, words)
		require.Len(t, list, 1, "a default needs no warning")
		assert.Equal(t, spec.Warning{Option: "timestamp_level", Reason: want}, list[0])
	}
	fast.Transcript.Segments[0].Words = []asr.Word{{Text: "a"}}
	assert.Empty(t, Warnings(o, effective, fast, true))
}

// TestWarningsOfHotwords: the warning names the hotwords that no recognizer can
// use.
func TestWarningsOfHotwords(t *testing.T) {
	names := []string{"Belvost", `a"b`}
	many := strings.Split("a b c d e f g h i j k l", " ")
	able := asr.Abilities{Hotwords: true}
	const weak = ": the standard tier looks for hotwords of five letters or more, and no CTC model looked for them"
	const unspelled = ": the model's vocabulary cannot spell them"
	const again = "; the standard tier used it for the passages that it decoded again"
	tests := []struct {
		name string
		tier spec.Tier
		made stages.Honored
		then *stages.Honored
		want string
	}{
		{"all have", spec.TierOptimized, stages.Honored{Abilities: able}, nil, ""},
		{"spelled", spec.TierOptimized, stages.Honored{Abilities: able, Ineffective: nil, Unspelled: names}, nil, `have no effect on "Belvost", "a\"b"` + unspelled},
		{"parts", spec.TierStandard, stages.Honored{Abilities: able, Ineffective: names[:1], Unspelled: nil}, nil, `have no effect on "Belvost"` + weak},
		{"both", spec.TierStandard, stages.Honored{Abilities: able, Ineffective: names[:1], Unspelled: names[1:]}, nil, `have no effect on "a\"b"` + unspelled + `; have no effect on "Belvost"` + weak},
		{"many", spec.TierOptimized, stages.Honored{Abilities: able, Ineffective: nil, Unspelled: many}, nil, `have no effect on "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" and 2 more` + unspelled},
		{"no ability", spec.TierOptimized, stages.Honored{Ineffective: names}, nil, "have no effect: the model does not support hotwords"},
		{"cascade", spec.TierOptimized, stages.Honored{Abilities: able, Ineffective: nil, Unspelled: names[:1]}, &stages.Honored{Abilities: able}, `have no effect on "Belvost"` + unspelled + again},
		{"not in the cascade either", spec.TierOptimized, stages.Honored{Abilities: able, Ineffective: nil, Unspelled: names[:1]}, &stages.Honored{Abilities: able, Ineffective: nil, Unspelled: names[:1]}, `have no effect on "Belvost"` + unspelled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := spec.Options{Hotwords: many}
			effective, err := o.Effective()
			require.NoError(t, err)
			text := &asr.Transcript{Ineffective: test.made.Ineffective, Unspelled: test.made.Unspelled}
			said := &stages.Transcription{Tier: test.tier, Transcript: text, Abilities: &test.made.Abilities, Again: test.then}
			var want []spec.Warning
			if test.want != "" {
				want = []spec.Warning{{Option: "hotwords", Reason: test.want}}
			}
			assert.Equal(t, want, Warnings(o, effective, said, false))
		})
	}
}

// TestAudioWarnings: samples that are no numbers; the decoded track, and at most
// ten others.
func TestAudioWarnings(t *testing.T) {
	assert.Empty(t, AudioWarnings(audio.Info{Duration: 1}))
	assert.Equal(t, []spec.Warning{{Option: spec.WarnAudio, Reason: "3 of the recording's samples are not finite numbers: they count as silence"}},
		AudioWarnings(audio.Info{NonFinite: 3}))
	tracks := []string{"2 (ac3) eng", "1 (ac3) ger"}
	for i := 3; i < 13; i++ {
		tracks = append(tracks, fmt.Sprintf("%d (mp2)", i))
	}
	for n, want := range map[int]string{
		2:  "the recording has 2 audio tracks: the result is that of track 2 (ac3) eng, without 1 (ac3) ger",
		12: "the recording has 12 audio tracks: the result is that of track 2 (ac3) eng, without 1 (ac3) ger, 3 (mp2), 4 (mp2), 5 (mp2), 6 (mp2), 7 (mp2), 8 (mp2), 9 (mp2), 10 (mp2), 11 (mp2), 1 more",
	} {
		assert.Equal(t, []spec.Warning{{Option: spec.WarnAudio, Reason: want}}, AudioWarnings(audio.Info{Tracks: tracks[:n]}))
	}
}

// TestWarningsWithCascade: the warning about an option that only the standard
// tier honored, in the cascade, does not claim that the option had no effect.
func TestWarningsWithCascade(t *testing.T) {
	o := spec.Options{ASRTemperature: new(0.4), InitialPrompt: new("a")}
	effective, err := o.Effective()
	require.NoError(t, err)
	said := &stages.Transcription{Tier: spec.TierOptimized, Transcript: &asr.Transcript{}, Abilities: &asr.Abilities{}, Again: &stages.Honored{Abilities: asr.Abilities{Temperature: true}}}
	assert.Equal(t, []spec.Warning{
		{Option: "asr_temperature", Reason: "has no effect: the model does not sample; the standard tier used it for the passages that it decoded again"},
		{Option: "initial_prompt", Reason: "is ignored: the model does not support prompts"},
	}, Warnings(o, effective, said, false))
}
