package align

import (
	"context"
	"slices"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// farOff is the maximum distance (seconds) by which a word is moved. The first
// recognizer's times are at least roughly right.
const farOff = 2.0

// Transcript replaces the times of a transcript's words with the times at which
// another model recognizes them. Words that the model does not find keep their
// places between their neighbors. Hotwords that it recognizes replace the
// transcript's words at the same time; hotwords that it can search for are
// removed from Ineffective and Unspelled. Segments in another language than the
// transcript's keep words and times; the others begin and end with their words.
// Stats includes the model's passes.
func Transcript(ctx context.Context, m Model, pcm *audio.PCM, speech []audio.Span, t *asr.Transcript, opt Options) error {
	vocab, err := tokensOf(m)
	if err != nil {
		return err
	}
	found := func(word string) bool { return slices.Contains(opt.Hotwords, word) && ctc.Spottable(word, vocab) }
	t.Ineffective, t.Unspelled = slices.DeleteFunc(t.Ineffective, found), slices.DeleteFunc(t.Unspelled, found)
	var words []*asr.Word
	var texts []string
	for i := range t.Segments {
		if l := t.Segments[i].Language; l != "" && l != t.Language {
			continue
		}
		for k := range t.Segments[i].Words {
			words = append(words, &t.Segments[i].Words[k])
			texts = append(texts, t.Segments[i].Words[k].Text)
		}
	}
	if len(words) == 0 {
		return nil
	}
	opt.Language = t.Language
	r := recording{pcm, speech}
	windows, err := r.listen(ctx, m, opt)
	if err != nil {
		return err
	}
	a, err := r.lay(ctx, vocab, windows, texts, opt)
	if err != nil {
		return err
	}
	t.Stats.AlignmentPasses += a.Passes
	move(words, a.Words, speech)
	decode.SettleWords(words, speech)
	for i := range t.Segments {
		if s := &t.Segments[i]; len(s.Words) > 0 {
			s.Start, s.End = s.Words[0].Start, s.Words[len(s.Words)-1].End
		}
	}
	putSpotted(t, windows)
	return nil
}

// move sets the words' times. Words without a new time keep their places
// between their neighbors; if they must be moved, they become interpolated.
func move(words []*asr.Word, found []Word, speech []audio.Span) {
	taken := func(i int) bool {
		off := found[i].Start - words[i].Start
		return !found[i].Missing && !found[i].Wild && -farOff < off && off < farOff
	}
	for i, w := range words {
		switch {
		case taken(i):
			w.Start, w.End, w.Interpolated = found[i].Start, found[i].End, false
			w.Evidence = &found[i].Probability
		case !found[i].Wild:
			w.Evidence = new(float64) // not found here, but perhaps spoken elsewhere
		}
	}
	for i := 0; i < len(words); i++ { // fits the words without a new time between the others
		if taken(i) {
			continue
		}
		from, to := 0.0, words[len(words)-1].End
		if i > 0 {
			from = words[i-1].End
		}
		j := i
		for j < len(words) && !taken(j) {
			j++
		}
		if j < len(words) {
			to = words[j].Start
		}
		if i > 0 && spokenSeconds(speech, from, to) < leastWord*float64(j-i) {
			share(words[i-1:j], speech) // the word before received the time of these words
		} else {
			fit(words[i:j], from, max(to, from))
		}
		i = j - 1
	}
}

// leastWord is the minimum duration of speech, in seconds, for a word.
const leastWord = 0.05

func spokenSeconds(speech []audio.Span, from, to float64) (sum float64) {
	for _, s := range speech {
		a, b := s.Seconds()
		sum += max(min(b, to)-max(a, from), 0)
	}
	return sum
}

// share divides the first word's time among all words by their letters.
func share(words []*asr.Word, speech []audio.Span) {
	pieces := make([]decode.Word, len(words))
	for i, w := range words {
		pieces[i].Text = w.Text
	}
	decode.Align(pieces, words[0].Start, words[0].End, speech)
	for i, w := range words {
		w.Start, w.End = pieces[i].Start, pieces[i].End
		w.Interpolated = w.Interpolated || i > 0
	}
}

// fit limits words to a stretch. If any word exceeds it, they share the stretch
// in the proportions of their present times.
func fit(words []*asr.Word, from, to float64) {
	first, last := words[0].Start, words[len(words)-1].End
	if first >= from && last <= to {
		return
	}
	low, high := max(first, from), min(last, to)
	if high-low < leastWord*float64(len(words)) { // they hardly overlap
		low, high = from, to
	}
	scale := 0.0
	if last > first {
		scale = (high - low) / (last - first)
	}
	for _, w := range words {
		w.Start, w.End, w.Interpolated = low+(w.Start-first)*scale, low+(w.End-first)*scale, true
	}
}
