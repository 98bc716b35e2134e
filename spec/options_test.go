package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The defaults equal the specification's Options table.
func TestEffectiveDefaults(t *testing.T) {
	e, err := Options{}.Effective()
	require.NoError(t, err)
	b, err := json.Marshal(e)
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"enable_asr": true, "enable_diarize": true, "enable_audio_events": true,
		"optimize": null, "timestamp_level": "word",
		"asr_language": null, "asr_beam_size": 5, "asr_temperature": 0, "asr_best_of": null,
		"hotwords": null, "initial_prompt": null,
		"vad_threshold": 0.35, "vad_min_speech_ms": 250, "vad_min_silence_ms": 100, "vad_speech_pad_ms": 30,
		"no_speech_threshold": 0.6,
		"num_speakers": null, "min_speakers": 1, "max_speakers": 10,
		"diarize_min_segment_sec": 0.5, "diarize_single_speaker_threshold": 0.05,
		"audio_events_threshold": 0.3, "audio_events_classes": null
	}`, string(b))
}

func TestOptionsJSON(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	tests := []struct {
		name, json string
		field      string // of the expected error; "" for none
		says       string
	}{
		{"empty", `{}`, "", ""},
		{"nulls that mean the default", `{"optimize":null,"asr_language":null,"asr_best_of":null,"hotwords":null,"initial_prompt":null,"num_speakers":null,"audio_events_classes":null}`, "", ""},
		{"null elsewhere", `{"enable_asr":null}`, "enable_asr", "true or false, not null"},
		{"unknown", `{"asr_beamsize":5}`, "asr_beamsize", `did you mean "asr_beam_size"`},
		{"other case", `{"Optimize":true}`, "Optimize", `did you mean "optimize"`},
		{"twice", `{"optimize":true,"optimize":false}`, "optimize", "given twice"},
		{"not an object", `[1]`, "", "must be a JSON object"},
		{"string for bool", `{"optimize":"true"}`, "optimize", "must be true or false"},
		{"number for bool", `{"enable_asr":1}`, "enable_asr", "must be true or false"},
		{"integer as float", `{"asr_beam_size":5.0}`, "", ""},
		{"fraction for integer", `{"asr_beam_size":5.5}`, "asr_beam_size", "must be an integer, not 5.5"},
		{"huge", `{"asr_beam_size":1e300}`, "asr_beam_size", "must be an integer"},
		{"huge float", `{"vad_threshold":1e999}`, "vad_threshold", "must be a number"},
		{"null in list", `{"hotwords":["a",null]}`, "hotwords", "list of strings"},
		{"number in list", `{"hotwords":[1]}`, "hotwords", "list of strings"},
		{"diarize without asr", `{"enable_asr":false}`, "enable_diarize", "enable_asr=true"},
		{"events alone", `{"enable_asr":false,"enable_diarize":false}`, "", ""},
		{"nothing", `{"enable_asr":false,"enable_diarize":false,"enable_audio_events":false}`, "enable_asr", "at least one"},
		{"both variants", `{"optimize":true,"optimize_zh":true}`, "optimize_zh", "one of the two"},
		{"level", `{"timestamp_level":"letter"}`, "timestamp_level", `"word" or "segment"`},
		{"level in capitals", `{"timestamp_level":"Word"}`, "timestamp_level", `"word" or "segment"`},
		{"language 639-1", `{"asr_language":"de"}`, "", ""},
		{"language 639-3", `{"asr_language":"deu"}`, "", ""},
		{"language unknown", `{"asr_language":"qqq"}`, "asr_language", "unknown language"},
		{"language misspelled", `{"asr_language":"portugese"}`, "asr_language", "code such as pt, or"},
		{"language empty", `{"asr_language":""}`, "asr_language", "unknown language"},
		{"beam 0", `{"asr_beam_size":0}`, "asr_beam_size", "between 1 and 20"},
		{"beam 20", `{"asr_beam_size":20}`, "", ""},
		{"beam 21", `{"asr_beam_size":21}`, "asr_beam_size", "between 1 and 20, not 21"},
		{"best of 0", `{"asr_best_of":0}`, "asr_best_of", "between 1 and 20"},
		{"best of 21", `{"asr_best_of":21}`, "asr_best_of", "between 1 and 20"},
		{"temperature", `{"asr_temperature":1.01}`, "asr_temperature", "between 0 and 1"},
		{"threshold below", `{"vad_threshold":-0.1}`, "vad_threshold", "between 0 and 1"},
		{"threshold 1", `{"vad_threshold":1}`, "", ""},
		{"min speech", `{"vad_min_speech_ms":10001}`, "vad_min_speech_ms", "between 0 and 10000"},
		{"min silence", `{"vad_min_silence_ms":-1}`, "vad_min_silence_ms", "between 0 and 10000"},
		{"pad", `{"vad_speech_pad_ms":2001}`, "vad_speech_pad_ms", "between 0 and 2000"},
		{"no speech", `{"no_speech_threshold":2}`, "no_speech_threshold", "between 0 and 1"},
		{"speakers 0", `{"num_speakers":0}`, "num_speakers", "between 1 and 50"},
		{"min over max", `{"min_speakers":5,"max_speakers":4}`, "min_speakers", "5 > 4"},
		{"min alone over the default maximum", `{"min_speakers":12}`, "", ""},
		{"max 51", `{"max_speakers":51}`, "max_speakers", "between 1 and 50"},
		{"min segment", `{"diarize_min_segment_sec":0.05}`, "diarize_min_segment_sec", "between 0.1 and 10"},
		{"single speaker", `{"diarize_single_speaker_threshold":-1.1}`, "diarize_single_speaker_threshold", "between -1 and 1"},
		{"events threshold", `{"audio_events_threshold":1.5}`, "audio_events_threshold", "between 0 and 1"},
		{"events class", `{"audio_events_classes":["Dog"]}`, "", ""},
		{"events class with a comma", `{"audio_events_classes":["Chicken, rooster"]}`, "", ""},
		{"events class unknown", `{"audio_events_classes":["Dogg"]}`, "audio_events_classes", `the nearest is "Dog"`},
		{"hotword of 64", `{"hotwords":[` + long(64) + `]}`, "", ""},
		{"hotword of 65", `{"hotwords":[` + long(65) + `]}`, "hotwords", "65 characters"},
		{"hotword empty", `{"hotwords":["ok"," "]}`, "hotwords", "entry 1 is empty"},
		{"201 hotwords", `{"hotwords":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 201), ",") + `]}`, "hotwords", "at most 200"},
		{"prompt of 1000", `{"initial_prompt":` + long(1000) + `}`, "", ""},
		{"prompt of 1001", `{"initial_prompt":` + long(1001) + `}`, "initial_prompt", "1001 characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var o Options
			err := json.Unmarshal([]byte(tt.json), &o)
			if err == nil {
				_, err = o.Effective()
			}
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrOptions)
			var bad *OptionError
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, tt.field, bad.Field)
			assert.Contains(t, bad.Reason, tt.says)
		})
	}
}

// Set options survive a round trip; others stay absent.
func TestOptionsRoundTrip(t *testing.T) {
	o := Options{EnableDiarize: new(false), Optimize: new(false), Hotwords: []string{"Otograph"}, VADThreshold: new(0.0)}
	b, err := json.Marshal(o)
	require.NoError(t, err)
	assert.Equal(t, `{"enable_diarize":false,"optimize":false,"hotwords":["Otograph"],"vad_threshold":0}`, string(b))
	var back Options
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, o, back)
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte(`{"optimize":true,"hotwords":["a"]}`))
	f.Add([]byte(`{"asr_beam_size":5.0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Options
		if json.Unmarshal(data, &o) != nil {
			return
		}
		e, err := o.Effective()
		if err != nil {
			assert.ErrorIs(t, err, ErrOptions)
			return
		}
		assert.LessOrEqual(t, *e.MinSpeakers, *e.MaxSpeakers)
	})
}
