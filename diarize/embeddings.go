package diarize

import (
	"context"
	"fmt"
	"slices"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// Embedder turns stretches of speech into vectors that describe the voice.
// Implementations are safe for concurrent use.
type Embedder interface {
	// Embed returns one vector of Dim numbers per window (samples of pcm at 16
	// kHz), in the windows' order. Vectors have unit length, or are zero if the
	// window has no embedding (digital silence, for example).
	Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([][]float32, error)
	// Dim returns the number of dimensions.
	Dim() int
	// SameSpeaker returns the cosine from which the centroids of two clusters
	// are one voice, 0 if not known.
	SameSpeaker() float64
	// Cosines returns the usual cosine of two windows of 1.5 s that do not
	// overlap, for one voice and for two; 0 if not known.
	Cosines() (one, two float64)
	// PLDA returns the model's analysis, nil if it has none. With it, the
	// clusters of windows are refined by VBx.
	PLDA() *PLDA
	// Close frees the model; it may be called more than once.
	Close() error
}

// Embeddings holds the embedded windows of one recording, from Embed for
// Cluster. It keeps the embedder and the recording, which must stay open until
// Cluster has returned, because change points are refined with further windows.
type Embeddings struct {
	// Speech holds the speech segments in order of time; with a segmenter,
	// their stretches with at most one voice at a time.
	Speech  []audio.Span
	Windows []audio.Span // the embedded windows, in order of time
	Segment []int        // per window: index in Speech of the segment it lies in

	scene    *scene       // the segmenter's results; nil without one
	original []audio.Span // with a scene: the speech segments
	voices   []audio.Span // with a scene: the stretches with voices
	within   []int        // with a scene: per stretch of Speech its index in original

	wide bool // the windows are wide: see windows

	sure func(speech audio.Span) bool // reports whether a segment is surely speech; nil: all

	vectors  matrix // unit length, one row per window
	embedder Embedder
	pcm      *audio.PCM
}

// spoken returns the speech segment of window i.
func (e *Embeddings) spoken(i int) audio.Span {
	if e.scene == nil {
		return e.Speech[e.Segment[i]]
	}
	return e.original[e.within[e.Segment[i]]]
}

// embedAtOnce bounds the windows per call of the embedder, so that a canceled
// context is honored soon and the vectors are copied out in steps.
const embedAtOnce = 256

// Embed cuts the speech into windows and embeds them: the first half of
// Diarize. speech must be in order of time, without overlaps, within pcm.
//
// If no segment reaches opt.MinSegment, the longest one is embedded anyway, so
// that the speech has a speaker.
func Embed(ctx context.Context, e Embedder, pcm *audio.PCM, speech []audio.Span, opt EmbedOptions) (*Embeddings, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	end := 0
	for i, s := range speech {
		if s.Start < end || s.End < s.Start || s.End > pcm.Len() {
			return nil, fmt.Errorf("diarize: speech segment %d [%d, %d) is out of order, overlaps the one before (which ends at %d) or leaves the recording of %d samples",
				i, s.Start, s.End, end, pcm.Len())
		}
		end = s.End
	}
	out := &Embeddings{Speech: slices.Clone(speech), embedder: e, pcm: pcm}
	if opt.Segmenter != nil && len(speech) > 0 {
		out.wide = samples(speech) > denseSpeech
		scene, err := listen(ctx, opt.Segmenter, pcm, out.wide)
		if err != nil {
			return nil, err
		}
		if solo, within := scene.solo(speech); len(solo) > 0 {
			out.scene, out.original, out.voices, out.Speech, out.within = scene, out.Speech, scene.voices(speech), solo, within
			speech = solo
		}
	}
	spans, segment := windows(speech, opt.MinSegment, out.wide)
	if len(spans) == 0 && len(speech) > 0 {
		longest := 0
		for i, s := range speech {
			if s.Len() > speech[longest].Len() {
				longest = i
			}
		}
		if speech[longest].Len() > 0 {
			spans, segment = []audio.Span{speech[longest]}, []int{longest}
		}
	}
	middles := make([]audio.Span, len(spans))
	for i, s := range spans {
		middles[i] = out.part(s, windowSamples)
	}
	vectors, err := out.embed(ctx, middles)
	if err != nil {
		return nil, err
	}
	dim := e.Dim()
	data := make([]float32, 0, len(spans)*dim)
	for i, v := range vectors {
		if !voices.Normalize(v) { // silence is treated like a segment that is too short
			continue
		}
		data = append(data, v...)
		out.Windows = append(out.Windows, spans[i])
		out.Segment = append(out.Segment, segment[i])
	}
	out.vectors = matrix{data: data, n: len(out.Windows), dim: dim}
	return out, nil
}

// embed calls the embedder for embedAtOnce stretches and checks the vectors.
func (e *Embeddings) embed(ctx context.Context, spans []audio.Span) ([][]float32, error) {
	all := make([][]float32, 0, len(spans))
	for batch := range slices.Chunk(spans, embedAtOnce) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors, err := e.embedder.Embed(ctx, e.pcm, batch)
		if err != nil {
			return nil, fmt.Errorf("diarize: embedding %d windows: %w", len(batch), err)
		}
		if len(vectors) != len(batch) {
			return nil, fmt.Errorf("diarize: the embedder gave %d vectors for %d windows", len(vectors), len(batch))
		}
		for i, v := range vectors {
			if len(v) != e.embedder.Dim() {
				return nil, fmt.Errorf("diarize: the embedder gave a vector of %d numbers for window %d, expected %d", len(v), i, e.embedder.Dim())
			}
		}
		all = append(all, vectors...)
	}
	return all, nil
}

// joinedWindows is the number of a voice's windows that joined puts end to end.
const joinedWindows = 4

// joined returns each label's vector: the mean of its centroid and of the vector
// of windows from all its speech, end to end. The vector of a longer sound varies
// less, but one window of another voice changes it
// (docs/measurements/known-voices.md). A label with one window has its centroid.
func (e *Embeddings) joined(ctx context.Context, labels []int, centre matrix) (matrix, error) {
	own := make([][]audio.Span, centre.n)
	for i, l := range labels {
		own[l] = append(own[l], middle(e.Windows[i], windowSamples))
	}
	var sound []float32
	var spans []audio.Span
	var number []int // per span: its label
	for l, windows := range own {
		from, end, n := len(sound), 0, min(joinedWindows, len(windows))
		if n < 2 {
			continue
		}
		for i := range n {
			w := windows[(2*i+1)*len(windows)/(2*n)]
			sound = append(sound, e.pcm.Samples(max(w.Start, end), w.End)...)
			end = w.End
		}
		spans, number = append(spans, audio.Span{Start: from, End: len(sound)}), append(number, l)
	}
	whole := Embeddings{embedder: e.embedder, pcm: audio.FromSamples(sound)}
	vectors, err := whole.embed(ctx, spans)
	out := matrix{data: slices.Clone(centre.data), n: centre.n, dim: centre.dim}
	for i, v := range vectors {
		if row := out.row(number[i]); voices.Normalize(v) { // else silence
			for d, x := range v {
				row[d] += x
			}
			voices.Normalize(row)
		}
	}
	return out, err
}
