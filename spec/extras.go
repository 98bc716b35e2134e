package spec

// Extras are the options outside the specification, as stored with tasks.
type Extras struct {
	// Translate requests the standard tier's text in English, for any spoken
	// language. A model that cannot translate causes whisper.ErrTranslation.
	Translate bool `json:"translate,omitempty"`
	// Measures requests the recognizer's measures in the service's results; the
	// library's always have them.
	Measures bool `json:"measures,omitempty"`
	// Languages are the codes (ISO 639-1) from which detection chooses if
	// Options.ASRLanguage is empty; without any it chooses from all.
	Languages []string `json:"languages,omitempty"`
	// Model is the name of the run's recognizer; "" is the set's. An unknown
	// name is an *OptionError. A standard model transcribes in the standard
	// tier, an optimized one in the optimized tier's languages.
	Model string `json:"model,omitempty"`
}
