// Package ctc reads the output of CTC models for the recognizers and package align:
// the words that their tokens spell (Vocabulary), the places of hotwords (Spotter), and
// where words begin and end in the sound around their tokens (Refine).
package ctc
