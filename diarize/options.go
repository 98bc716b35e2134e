package diarize

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/otograph/otograph/audio"
)

// ErrOptions marks an option out of range; the error names the option as in the
// service's JSON, the range and the value.
var ErrOptions = errors.New("diarization option out of range")

// Default values of the service's specification.
const (
	defaultMinSpeakers            = 1
	defaultMaxSpeakers            = 10
	defaultMinSegment             = 0.5  // seconds
	defaultSingleSpeakerThreshold = 0.05 // cosine silhouette
	// defaultExactWindows is the number of windows up to which all are clustered
	// by linkage (2.5 hours of speech); above it a sample is.
	defaultExactWindows = 12000
)

// Options configures Diarize.
type Options struct {
	EmbedOptions
	ClusterOptions
}

// EmbedOptions configures Embed.
type EmbedOptions struct {
	// MinSegment is the length in seconds below which speech is not embedded; it
	// takes the speaker of the nearest turn. 0 embeds every segment.
	MinSegment float64
	// Segmenter detects overlapping voices and changes of voice, of at most 64
	// speakers; nil means that one voice speaks at a time. With a segmenter,
	// only speech of one voice at a time is embedded.
	Segmenter Segmenter
}

// ClusterOptions configures Cluster.
type ClusterOptions struct {
	// NumSpeakers fixes the number of speakers; 0 detects it.
	NumSpeakers int
	// MinSpeakers and MaxSpeakers bound the detected number; 0 means the
	// default (1 and 10). Ignored if NumSpeakers is set.
	MinSpeakers, MaxSpeakers int
	// SingleSpeakerThreshold is the silhouette (−1 … 1) of the merged clusters
	// below which the recording counts as one speaker.
	SingleSpeakerThreshold float64
	// SameSpeakerCosine is the cosine of two clusters' centroids from which
	// they are one voice. It is a property of the embedder; 0 takes the
	// embedder's own value. It decides if the similarity of the recording's own
	// windows is inconclusive; if the embedder's value is also 0, such clusters
	// are two voices.
	SameSpeakerCosine float64
	// ExactWindows is the largest number of windows n that is clustered as a
	// whole, which takes 2·n² bytes (288 MB for the default); 0 means 12,000.
	// Above it, evenly spaced windows (3200 at most) are clustered and the
	// others join the nearest cluster.
	ExactWindows int
	// Passages are stretches that probably one voice speaks, such as the
	// sentences of a transcript, in order of time. A short one that has another
	// speaker's voice becomes that speaker's turn.
	Passages []audio.Span
	// Threads is the number of goroutines that clustering may use; 0 means 1.
	// The result does not depend on it.
	Threads int

	unstated bool // the embedder states no cosine from which two clusters are one voice
	cosines  cosines
	plda     *PLDA // nil without one
}

// DefaultSameSpeaker is the cosine from which two clusters are one voice if the
// embedder states none: right for published ECAPA networks (about 0.45 to 0.5).
const DefaultSameSpeaker = 0.5

// DefaultOptions returns the defaults of the service's specification.
func DefaultOptions() Options {
	return Options{EmbedOptions{MinSegment: defaultMinSegment}, ClusterOptions{
		MinSpeakers:            defaultMinSpeakers,
		MaxSpeakers:            defaultMaxSpeakers,
		SingleSpeakerThreshold: defaultSingleSpeakerThreshold,
		ExactWindows:           defaultExactWindows,
	}}
}

// bad returns an error for an option out of range.
func bad(name, want string, got any) error {
	return fmt.Errorf("%w: %s must be %s, got %v", ErrOptions, name, want, got)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// validate returns an error if an option is out of range (ErrOptions).
func (o EmbedOptions) validate() error {
	if !finite(o.MinSegment) || o.MinSegment < 0 {
		return bad("diarize_min_segment_sec", "0 or more seconds", o.MinSegment)
	}
	return nil
}

// validate returns an error for the first option out of range (ErrOptions);
// overlaps reports whether a segmenter is used.
func (o ClusterOptions) validate(overlaps bool) error {
	f := o.filled()
	switch {
	case o.NumSpeakers < 0:
		return bad("num_speakers", "1 or more, or 0 to find it", o.NumSpeakers)
	case o.MinSpeakers < 0:
		return bad("min_speakers", "1 or more", o.MinSpeakers)
	case o.MaxSpeakers < 0:
		return bad("max_speakers", "1 or more", o.MaxSpeakers)
	case f.MinSpeakers > f.MaxSpeakers && o.NumSpeakers == 0:
		return bad("min_speakers", fmt.Sprintf("at most max_speakers (%d)", f.MaxSpeakers), f.MinSpeakers)
	case overlaps && o.NumSpeakers > maxSpeakers:
		return bad("num_speakers", fmt.Sprintf("at most %d with a segmenter", maxSpeakers), o.NumSpeakers)
	case overlaps && o.NumSpeakers == 0 && f.MaxSpeakers > maxSpeakers:
		return bad("max_speakers", fmt.Sprintf("at most %d with a segmenter", maxSpeakers), f.MaxSpeakers)
	case !finite(o.SingleSpeakerThreshold) || o.SingleSpeakerThreshold < -1 || o.SingleSpeakerThreshold > 1:
		return bad("diarize_single_speaker_threshold", "between -1 and 1", o.SingleSpeakerThreshold)
	case !finite(o.SameSpeakerCosine) || o.SameSpeakerCosine < 0 || o.SameSpeakerCosine > 1:
		return bad("same_speaker_cosine", "between 0 and 1", o.SameSpeakerCosine)
	case o.ExactWindows < 0:
		return bad("exact_windows", "0 or more", o.ExactWindows)
	case o.Threads < 0:
		return bad("threads", "0 or more", o.Threads)
	}
	return nil
}

// filled replaces zeros that mean "default".
func (o ClusterOptions) filled() ClusterOptions {
	o.MinSpeakers = cmp.Or(o.MinSpeakers, defaultMinSpeakers)
	o.MaxSpeakers = cmp.Or(o.MaxSpeakers, max(defaultMaxSpeakers, o.MinSpeakers))
	if o.SameSpeakerCosine == 0 {
		o.SameSpeakerCosine, o.unstated = DefaultSameSpeaker, true
	}
	o.ExactWindows = cmp.Or(o.ExactWindows, defaultExactWindows)
	o.Threads = cmp.Or(o.Threads, 1)
	return o
}

// bounds returns the least and greatest number of speakers of n windows.
func (o ClusterOptions) bounds(n int) (least, most int) {
	least, most = o.MinSpeakers, o.MaxSpeakers
	if o.NumSpeakers > 0 {
		least, most = o.NumSpeakers, o.NumSpeakers
	}
	return min(least, n), min(most, n)
}
