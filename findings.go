package otograph

import (
	"fmt"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/events"
	"github.com/otograph/otograph/spec"
)

// findings are what the stages of a run found. A nil field is a stage that did
// not run, or failed.
type findings struct {
	speech        *speech
	transcription *transcription
	voices        *diarize.Embeddings // until they are clustered
	voiceWindows  int                 // that the embedder was asked about
	speakers      *diarize.Result
	sounds        *sounds
	apart         *apart // where channels were taken apart
}

// speech holds where speech was detected.
type speech struct {
	Spans         []audio.Span
	Probabilities []byte `json:",omitempty"` // of speech in each of the detector's windows, in 1/255
	Windows       int    `json:"-"`          // that the detector was asked about; 0 from a checkpoint
}

// language is the language of a recording.
type language struct {
	Code        string
	Probability float64
}

// transcription is what was said, and which tier heard it.
type transcription struct {
	Language   language
	Tier       Tier
	Transcript *asr.Transcript // never nil
	// Abilities are those of the recognizer; nil if there was no speech and
	// none ran.
	Abilities *asr.Abilities `json:",omitempty"`
	// Cascade counts what the standard tier decoded again.
	Cascade spec.CascadeStats
	// Again is what the standard tier honored there; nil where it decoded nothing.
	Again *honored `json:",omitempty"`
	// Uncorrected is the reason why the standard tier could not decode again
	// what it should have; "" if it could.
	Uncorrected string `json:",omitempty"`
}

// honored describes which options of a run a recognizer could honor.
type honored struct {
	Abilities asr.Abilities
	Powerless []string `json:",omitempty"` // hotwords, as in asr.Transcript
	Unspelled []string `json:",omitempty"`
}

// sounds are the sound events of a recording.
type sounds struct {
	Events []events.Event
	Frames int `json:"-"` // that the tagger scored; 0 from a checkpoint
}

// apart is what was found in channels that were taken apart.
type apart struct {
	channels []int           // of the recording, by speaker
	said     []spokenSegment // in order of time
}

// speakerName is the name of speaker n: of a channel where channels were taken apart.
func (f findings) speakerName(n int) string {
	if f.apart != nil {
		return fmt.Sprintf("CHANNEL_%d", f.apart.channels[n])
	}
	return spec.SpeakerName(n)
}
