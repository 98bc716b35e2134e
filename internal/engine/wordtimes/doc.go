// Package wordtimes finds when the words of a text are spoken, from a Whisper
// decoder's attention to the sound: OpenAI's method (softmax over the sound,
// normalized over the tokens, median filter, mean of the alignment heads,
// dynamic time warping), sharpened with a voice detector's spans, the sound's
// energy and a small network that detects where words begin, also for ctc.
package wordtimes
