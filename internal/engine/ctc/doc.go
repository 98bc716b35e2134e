// Package ctc interprets the output of CTC models for the recognizers and
// package align: the words that tokens spell (Vocabulary), the places of
// hotwords (Spotter), and the start and end of words around their tokens
// (Refine).
package ctc
