// Package decode implements the decoding steps that the recognizers and package
// align share. Pack distributes speech over windows that map times to the file.
// Words joins tokens to words. Align, Settle and Skipped place words in the
// speech. Unloop detects loops, Finder repeated sound. Sentences makes segments.
package decode
