// Package systems obtains transcripts from other recognizers, so that package
// bench measures them like Otograph: servers with OpenAI's transcription
// endpoint, programs, and files. It detects the output's format by the content
// and does not trust it: size and time are limited, and an output that is no
// transcript is a failure of that system, with the reason.
package systems
