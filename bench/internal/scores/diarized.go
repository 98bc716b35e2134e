package scores

// WDER counts the words of a word diarization error rate: Words counts the
// reference's words that the hypothesis has or replaces, Wrong those words that
// it assigns to another speaker (Shafey, Soltau and Shafran, Joint speech
// recognition and speaker diarization via sequence transduction, 2019).
type WDER struct{ Wrong, Words int }

// SpeakersOfWords aligns the words of all speakers ordered by time, matches
// speakers so that most words agree, and counts the words with another speaker.
// ok is false if the texts are too long to align.
func SpeakersOfWords(reference, hypothesis []Segment) (w WDER, ok bool) {
	ref, refSpeakers := spokenWords(reference)
	hyp, hypSpeakers := spokenWords(hypothesis)
	edits, ok := Align(ref, hyp)
	refNames, hypNames := interned{}, interned{}
	r, h := refNames.of(refSpeakers), hypNames.of(hypSpeakers)
	together := make([][]float64, len(refNames))
	for i := range together {
		together[i] = make([]float64, len(hypNames))
	}
	for _, e := range edits {
		if e.Reference >= 0 && e.Hypothesis >= 0 {
			together[r[e.Reference]][h[e.Hypothesis]]-- // negative, because the assignment minimizes
			w.Words++
		}
	}
	right := 0.0
	for i, c := range Assign(together, len(hypNames)) {
		if c >= 0 {
			right -= together[i][c]
		}
	}
	w.Wrong = w.Words - int(right)
	return w, ok
}

// spokenWords returns all words by their segments' starts, with speakers.
func spokenWords(segments []Segment) (words, speakers []string) {
	for _, s := range sorted(segments) {
		for _, w := range s.Words {
			words, speakers = append(words, w), append(speakers, s.Speaker)
		}
	}
	return words, speakers
}
