// Package wordtimes finds when the words of a text are spoken, from a Whisper
// decoder's attention to the sound: OpenAI's method (softmax over the sound,
// normalized over the tokens, median filter, mean of the alignment heads,
// dynamic time warping), sharpened with the spans of a voice detector and with
// the sound's energy. It computes no network.
package wordtimes
