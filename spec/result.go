package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// Result is the result of a run. In JSON it is the specification's Task result
// without task_id and billing: the keys of a capability are present exactly if
// that capability ran (see Ran), and are never null.
type Result struct {
	// AudioDuration is the length of the recording in seconds, exact to 0.1 ms:
	// its sound (Stats.DecodedSeconds) and the gaps in its time stamps.
	AudioDuration float64
	// AudioMD5 is the MD5 of the original bytes, 32 hexadecimal digits.
	AudioMD5 string

	// Language is the spoken language's code, detected or given ("en").
	Language string
	// LanguageProbability is the probability of Language, 0 to 1; 1 if given.
	LanguageProbability float64
	// Segments are the sentences, ordered by start.
	Segments []Segment
	// VADSegments are the stretches of speech, ordered, without overlap.
	VADSegments []Interval

	// NumSpeakers is the number of speakers found (or given).
	NumSpeakers int
	// NumSpeakersProbability is the probability, 0 to 1, that NumSpeakers is
	// right; nil if given, or without speech. The service omits it.
	NumSpeakersProbability *float64
	// SpeakerEmbeddings has one entry for each speaker, SPEAKER_0 first.
	SpeakerEmbeddings []SpeakerEmbedding
	// DiarizeSegments are the turns, ordered by start.
	DiarizeSegments []Turn

	// AudioEvents are the sound events, ordered by start, then by class.
	AudioEvents []AudioEvent

	// Names maps speakers to known voices' names; not part of the JSON form.
	Names map[string]string
	// Tier is the recognizer that ran; empty if transcription was off.
	Tier Tier
	// Ran reports which fields are filled.
	Ran Capabilities
	// Warnings lists the missing parts of the recording, and its audio tracks if
	// it has several and none was chosen (WarnAudio), the options that had no
	// effect, in the order of Table, then "device" for a device that could not
	// be used and "cascade" if the standard tier could not decode doubtful
	// segments again. Only warnings about the recording are part of the JSON
	// form, as "warnings".
	Warnings []Warning
	// Stats counts the work that was done; it is not part of the JSON form.
	Stats Stats
}

// Capabilities reports which parts of a Result are present.
type Capabilities struct{ ASR, Diarize, AudioEvents bool }

// Stats counts the work of a run.
type Stats struct {
	// ASR counts the work of the recognizer.
	ASR ASRStats
	// Cascade counts the optimized tier's text that was decoded again.
	Cascade CascadeStats
	// VADWindows, EmbeddingWindows and EventFrames count models' inputs.
	VADWindows, EmbeddingWindows, EventFrames int
	// DecodedSeconds is the sound's length, without gaps in time stamps.
	DecodedSeconds float64
	// Truncated is true if the file ended early and was used up to there.
	Truncated bool
	// StageSeconds is the wall time of each stage in seconds; stages overlap.
	StageSeconds map[Stage]float64
}

// Segment is a sentence of the transcript. Times are seconds of the audio.
type Segment struct {
	ID      int     `json:"id"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker,omitempty"` // SPEAKER_n, if diarization ran
	Words   []Word  `json:"words,omitzero"`    // nil in the optimized tier and with timestamp_level=segment
	// Language is the language code of the segment's text. It is set in every
	// segment if several languages are spoken in the recording, and in none
	// otherwise. The service's results omit it.
	Language string `json:"language,omitempty"`
	// Confidence is the expected share of correct words, 0 to 1, according to
	// the calibration of the recognizer's model: in all segments with 0.9
	// together, nine of ten words are correct. It is nil for a model without a
	// calibration, and if it was not requested.
	Confidence *float64 `json:"confidence,omitempty"`
	// Measures holds the recognizer's measures; nil if unknown; not in JSON.
	Measures *Measures `json:"-"`
}

// Word is a word (a character in Chinese, Japanese, Thai …), in seconds.
type Word struct {
	Word        string  `json:"word"`
	Start       float64 `json:"start"`
	End         float64 `json:"end"`
	Probability float64 `json:"probability"`
	// Interpolated reports that Start and End were not measured but
	// interpolated by letters between measured times.
	Interpolated bool `json:"interpolated,omitzero"`
	// Doubtful reports that the sound contradicts a word of the standard tier:
	// neither the model that times words nor the voice activity detector finds
	// it. It is not part of the JSON form.
	Doubtful bool `json:"-"`
	// Overlapped reports that two speakers are known to talk during at least
	// half of the word. It is not part of the JSON form.
	Overlapped bool `json:"-"`
}

// Interval is a stretch of time in seconds.
type Interval struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// SpeakerEmbedding is the voice embedding of one speaker.
type SpeakerEmbedding struct {
	SpeakerID    string    `json:"speaker_id"`
	Embedding    []float32 `json:"embedding"`     // unit length; 192 numbers with the published contracts
	SegmentCount int       `json:"segment_count"` // number of speech segments used
}

// Turn is a stretch of time, in seconds, in which one speaker speaks.
type Turn struct {
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Speaker string  `json:"speaker"`
}

// AudioEvent is a detected sound; times are seconds, accurate to about one.
type AudioEvent struct {
	Start      float64 `json:"start"`
	End        float64 `json:"end"`
	Class      string  `json:"class"` // English name, one of 521
	Confidence float64 `json:"confidence"`
}

// resultJSON is Result's JSON form: pointers, so that presence is exact.
type resultJSON struct {
	AudioDuration          float64             `json:"audio_duration"`
	AudioMD5               string              `json:"audio_md5"`
	Language               *string             `json:"language,omitempty"`
	LanguageProbability    *float64            `json:"language_probability,omitempty"`
	Segments               *[]Segment          `json:"segments,omitempty"`
	VADSegments            *[]Interval         `json:"vad_segments,omitempty"`
	NumSpeakers            *int                `json:"num_speakers,omitempty"`
	NumSpeakersProbability *float64            `json:"num_speakers_probability,omitempty"`
	SpeakerEmbeddings      *[]SpeakerEmbedding `json:"speaker_embeddings,omitempty"`
	DiarizeSegments        *[]Turn             `json:"diarize_segments,omitempty"`
	AudioEvents            *[]AudioEvent       `json:"audio_events,omitempty"`
	Warnings               []Warning           `json:"warnings,omitempty"`
}

// MarshalJSON writes the specification's Task result without task_id and
// billing, with a list of warnings about the recording, if there are any.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{AudioDuration: r.AudioDuration, AudioMD5: r.AudioMD5, Warnings: OfAudio(r.Warnings)}
	if r.Ran.ASR {
		j.Language, j.LanguageProbability = &r.Language, &r.LanguageProbability
		j.Segments, j.VADSegments = notNil(&r.Segments), notNil(&r.VADSegments)
	}
	if r.Ran.Diarize {
		j.NumSpeakers, j.NumSpeakersProbability = &r.NumSpeakers, r.NumSpeakersProbability
		j.SpeakerEmbeddings, j.DiarizeSegments = notNil(&r.SpeakerEmbeddings), notNil(&r.DiarizeSegments)
	}
	if r.Ran.AudioEvents {
		j.AudioEvents = notNil(&r.AudioEvents)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads the output of MarshalJSON, ignoring unknown keys.
func (r *Result) UnmarshalJSON(data []byte) error {
	var j resultJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	*r = Result{
		AudioDuration: j.AudioDuration, AudioMD5: j.AudioMD5,
		Language: *cmp.Or(j.Language, new("")), LanguageProbability: *cmp.Or(j.LanguageProbability, new(0.0)),
		Segments: *cmp.Or(j.Segments, new([]Segment)), VADSegments: *cmp.Or(j.VADSegments, new([]Interval)),
		NumSpeakers: *cmp.Or(j.NumSpeakers, new(0)), NumSpeakersProbability: j.NumSpeakersProbability, SpeakerEmbeddings: *cmp.Or(j.SpeakerEmbeddings, new([]SpeakerEmbedding)), DiarizeSegments: *cmp.Or(j.DiarizeSegments, new([]Turn)),
		AudioEvents: *cmp.Or(j.AudioEvents, new([]AudioEvent)), Warnings: j.Warnings,
		Ran: Capabilities{ASR: j.Segments != nil, Diarize: j.DiarizeSegments != nil, AudioEvents: j.AudioEvents != nil},
	}
	return nil
}

// notNil returns a list that JSON shows as [] rather than null.
func notNil[T any](list *[]T) *[]T {
	if *list == nil {
		*list = []T{}
	}
	return list
}

// SpeakerName returns the specification's name of speaker n, counted from 0 in
// the order in which they first speak; "" for a negative n.
func SpeakerName(n int) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf("SPEAKER_%d", n)
}

// Measures holds the recognizer's measures of a segment.
type Measures struct {
	// Seek is the start (in seconds of the recording) of the recognizer's
	// window in which the segment begins.
	Seek float64 `json:"seek"`
	// Tokens are the segment's token numbers, without time marks.
	Tokens []int32 `json:"tokens"`
	// Temperature is the decoder's; nil for a recognizer without a decoder.
	Temperature *float64 `json:"temperature"`
	// AvgLogProb is the mean natural logarithm of the tokens' probabilities.
	AvgLogProb float64 `json:"avg_logprob"`
	// NoSpeechProb is nil for a recognizer that doesn't estimate it.
	NoSpeechProb *float64 `json:"no_speech_prob"`
}
