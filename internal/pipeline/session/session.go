// Package session is the part of a run that package live drives, utterance by
// utterance. Package otograph, which knows pipelines, sets Open.
package session

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/stages"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Session holds the stages of one live session.
type Session struct {
	*stages.Stages
	// Known are the known voices.
	Known *voices.Register
	// Segments returns the sentences of findings, as in a Result.
	Segments func(f *stages.Findings, pcm *audio.PCM) []spec.Segment
	// Result assembles the result of a whole recording.
	Result func(pcm *audio.PCM, f *stages.Findings) (*spec.Result, error)
	// End ends the session. It must be called once.
	End func()
}

// Open checks options, as Pipeline.Run does, and returns a session of an
// *otograph.Pipeline, with the context of its work, which also ends when the
// pipeline is closed. more are otograph.RunOptions.
var Open func(ctx context.Context, pipeline any, options spec.Options, more any) (*Session, context.Context, error)
