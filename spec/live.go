package spec

// LiveKind is the kind of a LiveEvent.
type LiveKind string

// The kinds of events.
const (
	// LiveSpeechStarted reports that an utterance has begun, at Start.
	LiveSpeechStarted LiveKind = "speech_started"
	// LiveSpeechStopped reports that the utterance has ended, at End. Its
	// LiveFinal follows.
	LiveSpeechStopped LiveKind = "speech_stopped"
	// LivePartial has the text of an utterance that continues.
	LivePartial LiveKind = "partial"
	// LiveFinal has the text of an utterance that has ended, with its
	// sentences. An utterance without text has an empty one.
	LiveFinal LiveKind = "final"
	// LiveSpeakerChanged corrects the speaker of speech already reported.
	LiveSpeakerChanged LiveKind = "speaker_changed"
	// LiveSound is a sound event, a few seconds after its end.
	LiveSound LiveKind = "sound"
	// LiveCommitted reports that a Commit has been done. Utterance is the
	// utterance that the Commit ended, whose LiveFinal follows; −1 without one.
	LiveCommitted LiveKind = "committed"
	// LiveCleared reports that a Discard has been done. Utterance is the
	// dropped utterance, which has no LiveFinal; −1 without one.
	LiveCleared LiveKind = "cleared"
)

// LiveEvent is a report of a session of package live. Start and End are seconds
// of its sound.
type LiveEvent struct {
	Kind  LiveKind `json:"event"`
	Start float64  `json:"start"`
	End   float64  `json:"end,omitzero"`
	// Utterance is the number of the utterance, from 0 on.
	Utterance int `json:"utterance"`
	// Text is the text of a LivePartial or LiveFinal. Unless the session is
	// revisable, each text of an utterance begins with the text before: words
	// are added, never taken back.
	Text string `json:"text,omitempty"`
	// Segments are the sentences of a LiveFinal: the text of the same speech in a
	// recording. IDs count through the session.
	Segments []Segment `json:"segments,omitempty"`
	// Kept reports that the Text of a LiveFinal begins with words of a
	// LivePartial that Segments do not confirm.
	Kept bool `json:"kept,omitzero"`
	// From and To are the speakers of LiveSpeakerChanged; "" is unknown.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Language is the language code of a LiveFinal; "" without text.
	Language string `json:"language,omitempty"`
	// Names maps speakers to the known voices that they have so far.
	Names map[string]string `json:"names,omitempty"`
	// Class and Confidence belong to a LiveSound.
	Class      string  `json:"class,omitempty"`
	Confidence float64 `json:"confidence,omitzero"`
	// Behind is how many seconds of sound the session had received after End
	// when the event was made. Under load it grows; partials are left out first.
	Behind float64 `json:"behind,omitzero"`
	// Dropped counts the LivePartials left out since the last LivePartial or
	// LiveFinal.
	Dropped int `json:"dropped,omitzero"`
}
