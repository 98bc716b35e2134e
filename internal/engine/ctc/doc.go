// Package ctc interprets CTC models' output for the recognizers and package
// align: the words that tokens spell (Vocabulary), the places of hotwords
// (Spotter), and the start and end of words around their tokens (Refine).
package ctc
