// Package scores computes the error rates by which the literature compares
// transcripts with speakers, with the same figures as the programs that define
// them: the word error rate as in jiwer 4.0, cpWER, tcpWER, ORC-WER and
// DI-cpWER as in MeetEval 0.4.3. If several alignments have the fewest errors,
// the split into substitutions, deletions and insertions follows those programs
// too. Speakers are matched by assignment, never by permutations, so that the
// cost of twenty speakers grows only with their pairs. Texts are normalized by
// the rules of programs that publish word error rates.
package scores
