// Package scores computes the error rates by which transcripts with speakers
// are compared in the literature, to the same figures as the programs that
// define them: the word error rate as jiwer 4.0, cpWER, tcpWER, ORC-WER and
// DI-cpWER as MeetEval 0.4.3. Where several alignments have the fewest errors,
// the split into substitutions, deletions and insertions follows the program
// too. Speakers are matched by assignment, never by permutations, so that
// twenty of them cost no more than their pairs.
package scores
