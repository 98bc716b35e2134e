package align

import (
	"context"

	"github.com/otograph/otograph/internal/engine/ctc"
)

// Trace returns the input of ctc.Refine.
func Trace(v Vocabulary, windows []Recognition, text string) []ctc.Spoken {
	vocab := ctc.NewVocabulary(v.Tokens, v.Blank)
	t := newTrack(windows, prepare(Split(text), vocab), vocab)
	_ = t.lay(context.Background(), Options{})
	spoken, _, _, _ := t.spoken(&Alignment{Words: make([]Word, len(t.words))})
	return spoken
}
