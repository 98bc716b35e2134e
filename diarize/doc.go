// Package diarize finds who speaks when.
//
// The speech found by voice activity detection is cut into windows of 1.5 s
// every 0.75 s, an [Embedder] turns each window into a vector that describes
// the voice, and the vectors are clustered: average linkage on cosine distance
// to more clusters than speakers, Ward's rule from there, the number of
// speakers by the best cosine silhouette, re-assignment to the clusters'
// centroids until no window moves, Viterbi smoothing over time. Turns lie on
// the borders of the speech segments and, where the speaker changes inside a
// segment, at the change point found with short windows on both sides of it.
// With a [Segmenter], speech is cut where it detects another voice; turns are the
// stretches in which it detects one, and overlap where voices overlap.
//
// Everything except the embedder is pure Go, deterministic (for any number of
// threads) and without state between calls. Package diarize/networks runs
// published networks.
package diarize
