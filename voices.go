package otograph

import (
	"context"
	"fmt"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize/embed"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// KnownVoice is a person's name and a short recording in which only that person
// speaks.
type KnownVoice struct {
	Name      string
	Recording Source
}

// leastSpoken is the least speech in a recording for WithVoices, in seconds.
const leastSpoken = 1.0

// Voice returns the vector of a recording's only voice, computed by the set's
// speaker model, the seconds of speech that it is based on, and the warnings
// about the recording. The vector has unit length. Bad input, including a
// recording with several voices, causes a permanent error (spec.IsPermanent)
// that names the recording.
func (p *Pipeline) Voice(ctx context.Context, src Source) (vector []float32, seconds float64, warnings []spec.Warning, err error) {
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	defer leave()
	return p.voice(ctx, src, p.audio, 0)
}

func (p *Pipeline) voice(ctx context.Context, src Source, limits audio.Options, shortest float64) (vector []float32, seconds float64, warnings []spec.Warning, err error) {
	opt, err := Options{}.Effective()
	if err != nil {
		return nil, 0, nil, err
	}
	pcm, err := audio.Open(ctx, src, limits)
	if err != nil {
		return nil, 0, nil, err
	}
	defer pcm.Close()
	if length := pcm.Duration(); length < shortest {
		err = spec.Permanent(fmt.Errorf("expected at least %.0f s of audio, found %.1f s", math.Ceil(shortest), length))
	} else {
		vector, seconds, err = p.stages(opt, p.engines).OneVoice(ctx, pcm)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", src.Name(), err)
	}
	return vector, seconds, assemble.AudioWarnings(pcm.Info()), err
}

// SameVoice returns the minimum diarize.Similarity of two recordings of one
// person, for the set's speaker model. Some people's are as similar, so WithVoices
// also compares with other voices. Without a speaker model the error wraps
// models.ErrMissing.
func (p *Pipeline) SameVoice() (float64, error) {
	m, err := p.engines.Set.Need(models.RoleEmbedder)
	if err != nil {
		return 0, err
	}
	by, err := embed.Matching(m)
	return by.Alike, err
}

// learn returns the register of known voices.
func (p *Pipeline) learn(ctx context.Context, known []KnownVoice) (*voices.Register, error) {
	limits := p.audio
	limits.MaxSeconds = spec.LongestVoice + spec.VoiceSlack
	register := &voices.Register{}
	for i, v := range known {
		vector, seconds, _, err := p.voice(ctx, v.Recording, limits, spec.ShortestVoice-spec.VoiceSlack)
		if err == nil && seconds < leastSpoken {
			err = spec.Permanent(fmt.Errorf("%s: expected at least %.0f s of speech, found %.1f s", v.Recording.Name(), leastSpoken, seconds))
		}
		if err != nil {
			return nil, &VoiceError{Index: i, Err: err}
		}
		register.Voices = append(register.Voices, voices.Voice{Name: v.Name, Vectors: [][]float32{vector}})
	}
	return register, nil
}

// VoiceError reports a known voice that cannot be used, and the reason.
type VoiceError struct {
	Index int // index in the arguments of WithVoices, from 0
	Err   error
}

// Error implements error.
func (e *VoiceError) Error() string { return fmt.Sprintf("known voice %d: %v", e.Index+1, e.Err) }

// Unwrap returns the reason.
func (e *VoiceError) Unwrap() error { return e.Err }
