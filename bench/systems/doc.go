// Package systems asks other recognizers for their transcripts, so that package
// bench measures them beside Otograph: servers with OpenAI's transcription
// endpoint, programs, and results in files. What they write is read by its content
// and never trusted: its size and their time are limited, and an answer that is no
// transcript is a failure of that system with its reason.
package systems
