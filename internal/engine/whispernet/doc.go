// Package whispernet computes Whisper networks on the CPU: it reads a model in
// ggml's format, encodes windows of sound, and runs decoder passes over many
// columns together. It is independent of beams, languages and texts: package
// asr/whisper implements the search.
package whispernet
