// Package whispernet computes Whisper networks on the CPU: it reads a model in
// ggml's format, encodes windows of sound, and runs decoder passes over many
// columns together. It knows nothing of beams, languages or texts: package
// asr/whisper searches with it.
package whispernet
