package stages

import "github.com/otograph/otograph/asr"

// A word is doubtful if two models contradict it: the model that times words
// gives it a probability below minEvidence, and the voice activity detector's
// probability of silence during it is above mostSilent. TestDoubtfulWords of
// package stages measures both limits.
const (
	minEvidence = 0.02
	mostSilent  = 0.8
)

// markDoubtful marks the words of a transcript that the sound contradicts. A
// word without a value from one of the two models is not marked.
func markDoubtful(s *Speech, t *asr.Transcript) {
	for i := range t.Segments {
		for k := range t.Segments[i].Words {
			w := &t.Segments[i].Words[k]
			silent, known := s.Silence(w.Start, w.End)
			w.Doubtful = known && silent > mostSilent && w.Evidence != nil && *w.Evidence < minEvidence
		}
	}
}
