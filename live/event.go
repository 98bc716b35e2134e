package live

import "github.com/otograph/otograph/spec"

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	// SpeechStarted reports that an utterance has begun, at Start.
	SpeechStarted Kind = "speech_started"
	// SpeechStopped reports that the utterance has ended, at End. Its Final
	// follows.
	SpeechStopped Kind = "speech_stopped"
	// Partial has the text of an utterance that continues.
	Partial Kind = "partial"
	// Final has the text of an utterance that has ended, with its sentences. An
	// utterance without text has an empty one.
	Final Kind = "final"
	// SpeakerChanged corrects the speaker of speech that was already given.
	SpeakerChanged Kind = "speaker_changed"
	// Sound is a sound event, a few seconds after its end.
	Sound Kind = "sound"
)

// Event is a report of a session. Start and End are seconds of its sound.
type Event struct {
	Kind  Kind    `json:"event"`
	Start float64 `json:"start"`
	End   float64 `json:"end,omitzero"`
	// Utterance is the number of the utterance, from 0 on.
	Utterance int `json:"utterance"`
	// Text is the text of a Partial or Final. Unless Options.Revisable is set,
	// each is the beginning of the next one of its utterance: the text is never
	// taken back, only extended.
	Text string `json:"text,omitempty"`
	// Segments are the sentences of a Final: the text of the same speech in a
	// recording. IDs count through the session.
	Segments []spec.Segment `json:"segments,omitempty"`
	// Kept reports that the Text of a Final begins with words of a Partial that
	// Segments do not confirm.
	Kept bool `json:"kept,omitzero"`
	// From and To are the speakers of SpeakerChanged; "" is not known.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Names maps speakers to the known voices that they have so far.
	Names map[string]string `json:"names,omitempty"`
	// Class and Confidence are those of a Sound.
	Class      string  `json:"class,omitempty"`
	Confidence float64 `json:"confidence,omitzero"`
	// Behind is how many seconds of sound the session had received after End
	// when the event was made. Under load it grows; partials are left out first.
	Behind float64 `json:"behind,omitzero"`
}
