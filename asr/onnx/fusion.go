package onnx

import "github.com/otograph/otograph/asr/ngram"

// fusion adds hotwords and a language model to a search over tokens (shallow
// fusion). All families' searches share it. The zero value adds nothing.
type fusion struct {
	vocab *vocabulary
	boost *booster      // nil: no hotwords
	lm    *ngram.Scorer // nil: no language model
	space int           // the id after the vocabulary's last, which writes a space
}

// newFusion prepares a recognizer's search for hotwords; lm may be nil.
func newFusion(hotwords []string, v *vocabulary, lm *ngram.Scorer) fusion {
	texts := v.texts()
	return fusion{vocab: v, boost: newBooster(hotwords, texts, v.spaced), lm: lm.Sparing(hotwords), space: len(texts) - 1}
}

// none reports whether there is nothing to add.
func (f *fusion) none() bool { return f.boost == nil && f.lm == nil }

// standing is a partial text's state in hotwords and language model.
type standing struct {
	at    place
	words ngram.Place
	last  int // the last token with text, -1 without one
	// bonus is the text's part of the logarithm of its probability.
	bonus float64
}

func (f *fusion) begin() standing {
	return f.scored(standing{at: f.boost.begin(), words: f.lm.Begin(), last: -1})
}

func (f *fusion) scored(s standing) standing {
	s.bonus = f.boost.score(s.at) + f.lm.Score(s.words)
	return s
}

// step returns the standing after another token. A token that only repeats the
// one before it, as in a CTC output, earns nothing.
func (f *fusion) step(s standing, id int, repeats bool) standing {
	if f.none() {
		return s
	}
	if f.vocab.spaceBetween(s.last, id) {
		s.at, s.words = f.boost.step(s.at, f.space, false), f.lm.Step(s.words, f.space)
	}
	s.at, s.words = f.boost.step(s.at, id, repeats), f.lm.Step(s.words, id)
	if f.vocab.writes(id) {
		s.last = id
	}
	return f.scored(s)
}

// finish returns the bonus of a text that ends here.
func (f *fusion) finish(s standing) float64 { return f.boost.finish(s.at) + f.lm.Finish(s.words) }
