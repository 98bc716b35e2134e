package align

import "context"

// Bands is what the border network hears.
var Bands = bands

// Trace returns what Refine gets to see.
func Trace(v *Vocabulary, heard []Heard, text, language string) []Spoken {
	t := newTrack(heard, prepare(Split(text), language, v), v)
	_ = t.lay(context.Background(), Options{})
	spoken, _, _, _ := t.spoken(&Alignment{Words: make([]Word, len(t.words))})
	return spoken
}
