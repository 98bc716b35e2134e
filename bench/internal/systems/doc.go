// Package systems obtains transcripts from other recognizers, so that package
// bench measures them like Otograph: servers with OpenAI's transcription
// endpoint, programs, and results in files. It detects the format of their
// output by the content and does not trust it: size and time are limited, and
// an output that is not a transcript is a failure of that system, with the
// reason.
package systems
