// Package decode holds the Go half of decoding that the recognizers and package
// align share: Pack distributes speech over windows with a time map back to the
// file, Words joins tokens to words, Align, Settle and Skipped place words in the
// speech, Unloop and CompressionRatio recognize loops, and Sentences makes the
// transcript's segments.
package decode
