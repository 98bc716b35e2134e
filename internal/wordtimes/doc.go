// Package wordtimes tells when the words of a text are spoken, by how a Whisper
// decoder attends to the sound while it reads them: OpenAI's method (softmax over the
// sound, normalized over the tokens, median filter, mean of the alignment heads,
// dynamic time warping), sharpened with the speech that a voice detector has found and
// with the sound's energy. It computes no network.
package wordtimes
