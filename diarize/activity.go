package diarize

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"

	"github.com/otograph/otograph/audio"
)

// Segmenter detects who speaks when within short windows, including overlapping
// voices. Its speakers are local: speaker 0 of one window and speaker 0 of the
// next need not be the same voice. Implementations are safe for concurrent use.
type Segmenter interface {
	// Window returns the length of a window in samples.
	Window() int
	// Segment returns the activity in the windows, each Window samples long or,
	// at the end of the recording, shorter.
	Segment(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([]Activity, error)
	// Close frees the model; it may be called more than once.
	Close() error
}

// Activity holds the active local speakers of a window, frame by frame.
type Activity struct {
	// Active holds a set of local speakers per frame: bit 0 is the first one.
	Active []uint8
	// Shift is the distance between two frames and Field the length of a
	// frame's sound, in samples. Frame i is centered on i·Shift + Field/2.
	Shift, Field int
}

// at returns the local speakers at a sample of the window (nearest frame).
func (a Activity) at(sample int) uint8 {
	if len(a.Active) == 0 {
		return 0
	}
	frame := (sample - a.Field/2 + a.Shift/2) / a.Shift
	return a.Active[min(max(frame, 0), len(a.Active)-1)]
}

// sceneStep is the distance of the scene's frames in samples: 10 ms.
const sceneStep = audio.SampleRate / 100

// tile is a window of the segmenter and the part of it that counts: the middle,
// which has context on both sides.
type tile struct {
	window, middle audio.Span
	activity       Activity
}

// at returns the tile's local speakers at a sample of the recording.
func (t tile) at(sample int) uint8 { return t.activity.at(sample - t.window.Start) }

// alone returns the tile's local speakers at a sample, as a set, if there is
// one, and 0 for several and outside the tile's window.
func (t tile) alone(sample int) uint8 {
	if sample < t.window.Start || bits.OnesCount8(t.at(sample)) != 1 {
		return 0
	}
	return t.at(sample)
}

// scene holds a segmenter's results for the speech of a recording.
type scene struct {
	tiles []tile // in order of time; their middles do not overlap
}

// listen runs the segmenter over a recording. Windows start every half window,
// and the middle half of each is used; in a long recording, every nine tenths,
// which costs 0.6 times as much (docs/measurements/speakers.md has the errors).
func listen(ctx context.Context, s Segmenter, pcm *audio.PCM, long bool) (*scene, error) {
	length := s.Window()
	if length < 2*sceneStep {
		return nil, fmt.Errorf("diarize: the segmenter has windows of %d samples, expected at least %d", length, 2*sceneStep)
	}
	var out scene
	var windows []audio.Span
	hop := length / 2
	if long {
		hop = length / 10 * 9
	}
	for at := 0; at < pcm.Len(); at += hop {
		start := max(0, min(at-(length-hop)/2, pcm.Len()-length))
		t := tile{window: audio.Span{Start: start, End: min(start+length, pcm.Len())}, middle: audio.Span{Start: at, End: min(at+hop, pcm.Len())}}
		out.tiles, windows = append(out.tiles, t), append(windows, t.window)
	}
	for from := 0; from < len(windows); from += embedAtOnce {
		batch := windows[from:min(from+embedAtOnce, len(windows))]
		activities, err := s.Segment(ctx, pcm, batch)
		if err != nil {
			return nil, fmt.Errorf("diarize: segmenting %d windows: %w", len(batch), err)
		}
		if len(activities) != len(batch) {
			return nil, fmt.Errorf("diarize: the segmenter gave %d activities for %d windows", len(activities), len(batch))
		}
		for i, h := range activities {
			if len(h.Active) == 0 || h.Shift <= 0 || h.Field < 0 {
				return nil, fmt.Errorf("diarize: the segmenter gave %d frames every %d samples for window %d", len(h.Active), h.Shift, from+i)
			}
			out.tiles[from+i].activity = h
		}
	}
	return &out, nil
}

// voices returns the stretches in which the segmenter hears someone, and the
// speech segments in which it hears nobody, in order of time.
func (s *scene) voices(speech []audio.Span) (spans []audio.Span) {
	var voiced []audio.Span
	for _, t := range s.tiles {
		for at := t.middle.Start; at < t.middle.End; at += sceneStep {
			to := min(at+sceneStep, t.middle.End)
			if t.at(at) == 0 {
				continue
			}
			if n := len(voiced); n > 0 && voiced[n-1].End == at {
				voiced[n-1].End = to
			} else {
				voiced = append(voiced, audio.Span{Start: at, End: to})
			}
		}
	}
	next := 0
	for _, segment := range speech {
		for next < len(voiced) && voiced[next].End <= segment.Start {
			spans = append(spans, voiced[next])
			next++
		}
		if next == len(voiced) || voiced[next].Start >= segment.End {
			spans = append(spans, segment)
		}
	}
	return append(spans, voiced[next:]...)
}

// solo returns the stretches of speech of one voice at a time, cut where the
// segmenter hears another local speaker, and for each its speech segment's
// index. Frames without a voice belong to the stretch before them.
func (s *scene) solo(speech []audio.Span) (spans []audio.Span, within []int) {
	last := uint8(0) // the local speaker of the last span, as a set; 0 if not known
	add := func(start, end, segment int, who uint8) {
		n := len(spans)
		touches := n > 0 && spans[n-1].End == start && within[n-1] == segment
		if touches && (who == 0 || last == 0 || who == last) {
			spans[n-1].End, last = end, cmp.Or(who, last)
			return
		}
		last = who
		spans, within = append(spans, audio.Span{Start: start, End: end}), append(within, segment)
	}
	next := 0
	for i, segment := range speech {
		for next < len(s.tiles) && s.tiles[next].middle.End <= segment.Start {
			next++
		}
		for _, t := range s.tiles[next:] {
			start, end := max(segment.Start, t.middle.Start), min(segment.End, t.middle.End)
			if start >= end {
				break
			}
			last = t.alone(start - sceneStep) // other tiles number their local speakers differently
			for at := start; at < end; at += sceneStep {
				if who := t.at(at); bits.OnesCount8(who) <= 1 {
					add(at, min(at+sceneStep, end), i, who)
				}
			}
		}
	}
	return spans, within
}
