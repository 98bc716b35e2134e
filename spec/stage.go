package spec

// Stage is a part of a run.
type Stage string

// The stages in the order in which they begin. StageEvents and StageEmbed run
// in parallel with StageLanguage and StageTranscribe.
const (
	StageDecode     Stage = "decode"     // decode any format to samples
	StageVAD        Stage = "vad"        // detect speech
	StageLanguage   Stage = "language"   // identify the language
	StageTranscribe Stage = "transcribe" // transcribe speech
	StageEmbed      Stage = "embed"      // compute voice embeddings
	StageEvents     Stage = "events"     // detect sound events
	StageDiarize    Stage = "diarize"    // assign speakers
)

// Progress is a report from a run. Reports arrive one at a time, in order, from
// the goroutines of the run, so a slow receiver slows the run.
type Progress struct {
	// Stage is the stage that the report is about.
	Stage Stage
	// Fraction is the completed part of the run, 0 to 1, never decreasing.
	Fraction float64
	// Done is true in the one report that ends the stage.
	Done bool
	// AudioDuration is the decoded length in seconds, 0 until known.
	AudioDuration float64
}
