package stages

import (
	"context"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Session is the part of a run that package live drives, utterance by utterance.
type Session struct {
	*Stages
	// Known are the known voices.
	Known *voices.Register
	// Segments returns the sentences of findings, as in a Result.
	Segments func(f *Findings, pcm *audio.PCM) []spec.Segment
	// Result assembles the result of a whole recording.
	Result func(pcm *audio.PCM, f *Findings) *spec.Result
	// End ends the session. It must be called once.
	End func()
}

// OpenSession checks options, as Pipeline.Run does, and returns a session of an
// *otograph.Pipeline, with the context of its work, which also ends when the
// pipeline is closed. more are otograph.RunOptions. Package otograph, which
// defines pipelines, sets OpenSession.
var OpenSession func(ctx context.Context, pipeline any, options spec.Options, more any) (*Session, context.Context, error)
