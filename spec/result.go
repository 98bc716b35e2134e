package spec

import (
	"encoding/json"
	"fmt"
)

// Result is what a run found. In JSON it is the specification's Task result
// without task_id and billing: the keys of a capability are present exactly
// when that capability ran (see Ran), and are never null.
type Result struct {
	// AudioDuration is the decoded length in seconds, to 0.1 ms: no sample is lost.
	AudioDuration float64
	// AudioMD5 is the MD5 of the original bytes, 32 hexadecimal digits.
	AudioMD5 string

	// Language is the code of the spoken language, detected or given ("en", "zh").
	Language string
	// LanguageProbability is the detector's probability, 0 to 1; 1 when the language was given.
	LanguageProbability float64
	// Segments are the sentences, ordered by start.
	Segments []Segment
	// VADSegments are the stretches of speech, ordered, without overlap.
	VADSegments []Interval

	// NumSpeakers is the number of speakers found (or given).
	NumSpeakers int
	// SpeakerEmbeddings has one entry for each speaker, SPEAKER_0 first.
	SpeakerEmbeddings []SpeakerEmbedding
	// DiarizeSegments are the turns, ordered by start.
	DiarizeSegments []Turn

	// AudioEvents are the sound events, ordered by start, then by class.
	AudioEvents []AudioEvent

	// Names are the speakers whose voices are known, by speaker; it is not part of the
	// JSON form.
	Names map[string]string
	// Tier is the recognizer that ran; empty when transcription was off.
	Tier Tier
	// Ran says whose fields are filled.
	Ran Capabilities
	// Warnings lists the options that had no effect, in the order of Table, and after
	// them, as "device", a device that could not be used, and as "cascade" that the
	// standard tier could not decode again; it is not part of the JSON form.
	Warnings []Warning
	// Stats counts the work that was done; it is not part of the JSON form.
	Stats Stats
}

// Capabilities says which parts of a Result are there.
type Capabilities struct{ ASR, Diarize, AudioEvents bool }

// Stats counts the work of a run.
type Stats struct {
	// ASR counts the work of the recognizer.
	ASR ASRStats
	// Cascade counts what the standard tier decoded again of a text of the optimized tier.
	Cascade CascadeStats
	// VADWindows, EmbeddingWindows and EventFrames count what the other models were asked.
	VADWindows, EmbeddingWindows, EventFrames int
	// NonFinite is the number of NaN and Inf samples that were read as silence.
	NonFinite int
	// Truncated is true when the file ended early and what there was has been processed.
	Truncated bool
	// StageSeconds is the wall time of each stage in seconds; stages overlap.
	StageSeconds map[Stage]float64
}

// Segment is one sentence of the transcript. Times are seconds from the start of the audio.
type Segment struct {
	ID      int     `json:"id"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker,omitempty"` // SPEAKER_n, when diarization ran
	Words   []Word  `json:"words,omitzero"`    // nil in the optimized tier and with timestamp_level=segment
	// Confidence is how much of the text is right, 0 to 1, as the recognizer's model
	// was calibrated: of all segments with 0.9, nine words in ten are. It is nil for a
	// model without a calibration, and where it was not asked for.
	Confidence *float64 `json:"confidence,omitempty"`
	// Measures are what the recognizer measured, nil where that is not known. It is
	// not part of the JSON form.
	Measures *Measures `json:"-"`
}

// Word is one word (a character in Chinese, Japanese, Thai …) with its times in seconds.
type Word struct {
	Word        string  `json:"word"`
	Start       float64 `json:"start"`
	End         float64 `json:"end"`
	Probability float64 `json:"probability"`
	// Doubtful reports that Start and End were not measured: they are interpolated
	// by letters between times that were. It is not part of the JSON form.
	Doubtful bool `json:"-"`
	// Overlapped reports that two speakers talk during half of the word or more, as
	// far as is known. It is not part of the JSON form.
	Overlapped bool `json:"-"`
}

// Interval is a stretch of time in seconds.
type Interval struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// SpeakerEmbedding is the voice of one speaker.
type SpeakerEmbedding struct {
	SpeakerID    string    `json:"speaker_id"`
	Embedding    []float32 `json:"embedding"`     // unit length; 192 numbers with the published contracts
	SegmentCount int       `json:"segment_count"` // speech segments that went into it
}

// Turn is a stretch of time, in seconds, in which one speaker speaks.
type Turn struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Speaker string  `json:"speaker"`
}

// AudioEvent is a sound that was heard; times are seconds, exact to about one.
type AudioEvent struct {
	Start      float64 `json:"start"`
	End        float64 `json:"end"`
	Class      string  `json:"class"` // English name, one of 521
	Confidence float64 `json:"confidence"`
}

// resultJSON is Result's form on the wire: pointers, so that presence is exact.
type resultJSON struct {
	AudioDuration       float64             `json:"audio_duration"`
	AudioMD5            string              `json:"audio_md5"`
	Language            *string             `json:"language,omitempty"`
	LanguageProbability *float64            `json:"language_probability,omitempty"`
	Segments            *[]Segment          `json:"segments,omitempty"`
	VADSegments         *[]Interval         `json:"vad_segments,omitempty"`
	NumSpeakers         *int                `json:"num_speakers,omitempty"`
	SpeakerEmbeddings   *[]SpeakerEmbedding `json:"speaker_embeddings,omitempty"`
	DiarizeSegments     *[]Turn             `json:"diarize_segments,omitempty"`
	AudioEvents         *[]AudioEvent       `json:"audio_events,omitempty"`
}

// MarshalJSON writes the specification's Task result without task_id and billing.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{AudioDuration: r.AudioDuration, AudioMD5: r.AudioMD5}
	if r.Ran.ASR {
		j.Language, j.LanguageProbability = &r.Language, &r.LanguageProbability
		j.Segments, j.VADSegments = notNil(&r.Segments), notNil(&r.VADSegments)
	}
	if r.Ran.Diarize {
		j.NumSpeakers = &r.NumSpeakers
		j.SpeakerEmbeddings, j.DiarizeSegments = notNil(&r.SpeakerEmbeddings), notNil(&r.DiarizeSegments)
	}
	if r.Ran.AudioEvents {
		j.AudioEvents = notNil(&r.AudioEvents)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote; keys that it does not know
// (task_id, billing) are passed over.
func (r *Result) UnmarshalJSON(data []byte) error {
	var j resultJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	*r = Result{
		AudioDuration: j.AudioDuration, AudioMD5: j.AudioMD5,
		Language: or(j.Language, ""), LanguageProbability: or(j.LanguageProbability, 0),
		Segments: or(j.Segments, nil), VADSegments: or(j.VADSegments, nil),
		NumSpeakers: or(j.NumSpeakers, 0), SpeakerEmbeddings: or(j.SpeakerEmbeddings, nil), DiarizeSegments: or(j.DiarizeSegments, nil),
		AudioEvents: or(j.AudioEvents, nil),
		Ran:         Capabilities{ASR: j.Segments != nil, Diarize: j.DiarizeSegments != nil, AudioEvents: j.AudioEvents != nil},
	}
	return nil
}

// notNil makes an empty list of a missing one: the specification knows no null.
func notNil[T any](list *[]T) *[]T {
	if *list == nil {
		*list = []T{}
	}
	return list
}

// SpeakerName is the specification's name of speaker n, counted from 0 in the
// order in which they first speak.
func SpeakerName(n int) string { return fmt.Sprintf("SPEAKER_%d", n) }

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
