package otograph

import (
	"context"
	"fmt"
	"math"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// KnownVoice is a person's name and a short recording of that person alone.
type KnownVoice struct {
	Name      string
	Recording Source
}

// leastSpoken is the least speech in a recording of RunOptions.Voices, in seconds.
const leastSpoken = 1.0

// Voice is the voice of a recording with one speaker.
type Voice struct {
	// Vector is the set's speaker model's vector, of unit length.
	Vector []float32
	// Seconds is the length of the speech that it is based on.
	Seconds float64
	// Warnings are those about the recording (spec.WarnAudio).
	Warnings []spec.Warning
}

// Voice returns a recording's only voice. Bad input, such as several voices,
// causes a permanent error (spec.IsPermanent) that names the recording.
func (p *Pipeline) Voice(ctx context.Context, src Source) (Voice, error) {
	ctx, leave, err := p.begin(ctx)
	if err != nil {
		return Voice{}, err
	}
	defer leave()
	return p.voice(ctx, src, p.config.Audio, 0)
}

func (p *Pipeline) voice(ctx context.Context, src Source, limits audio.Options, shortest float64) (v Voice, err error) {
	opt, err := Options{}.Effective()
	if err != nil {
		return v, err
	}
	pcm, err := audio.Open(ctx, src, limits)
	if err != nil {
		return v, err
	}
	defer pcm.Close()
	v.Warnings = assemble.AudioWarnings(pcm.Info())
	if length := pcm.Duration(); length < shortest {
		err = spec.Permanent(fmt.Errorf("expected at least %.0f s of audio, found %.1f s", math.Ceil(shortest), length))
	} else {
		v.Vector, v.Seconds, err = p.stages(opt, p.engines).OneVoice(ctx, pcm)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", src.Name(), err)
	}
	return v, err
}

// learn returns the register of known voices.
func (p *Pipeline) learn(ctx context.Context, known []KnownVoice) (*voices.Register, error) {
	limits := p.config.Audio
	limits.MaxSeconds = spec.LongestVoice + spec.VoiceSlack
	register := &voices.Register{}
	for i, v := range known {
		voice, err := p.voice(ctx, v.Recording, limits, spec.ShortestVoice-spec.VoiceSlack)
		if err == nil && voice.Seconds < leastSpoken {
			err = spec.Permanent(fmt.Errorf("%s: expected at least %.0f s of speech, found %.1f s", v.Recording.Name(), leastSpoken, voice.Seconds))
		}
		if err != nil {
			return nil, &VoiceError{Index: i, Err: err}
		}
		register.Voices = append(register.Voices, voices.Voice{Name: v.Name, Vectors: [][]float32{voice.Vector}})
	}
	return register, nil
}

// VoiceError reports a known voice that cannot be used, and the reason.
type VoiceError struct {
	Index int // index in the RunOptions.Voices, from 0
	Err   error
}

// Error implements error.
func (e *VoiceError) Error() string { return fmt.Sprintf("known voice %d: %v", e.Index+1, e.Err) }

// Unwrap returns the reason.
func (e *VoiceError) Unwrap() error { return e.Err }
