// Package ctc reads the output of CTC models for the recognizers and package align:
// what their tokens can spell (Vocabulary), where a hotword is heard (Spotter), and
// where words begin and end in the sound around their tokens (Refine).
package ctc
