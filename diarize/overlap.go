package diarize

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/otograph/otograph/audio"
)

const (
	// leastOverlap is the shortest second voice that becomes a turn, in
	// samples: shorter ones are mostly the blur around a change of speaker.
	leastOverlap = 7 * audio.SampleRate / 20
	// minVoiced is the least speech, in samples, from which a local speaker
	// that never speaks alone is embedded.
	minVoiced = 3 * audio.SampleRate / 10
	// maxSpeakers is the most speakers for which overlaps are reported.
	maxSpeakers = 64
	// maxLocal is the largest number of local speakers of a window.
	maxLocal = 8
)

// overlapping returns who speaks when in the stretches with voices, with
// overlaps: the known pieces (solo, of one voice each), and elsewhere the
// speakers to whom the local speakers belong.
func overlapping(ctx context.Context, e *Embeddings, known []piece, centre matrix) ([]piece, error) {
	voices, err := localVoices(ctx, e, known, centre)
	if err != nil {
		return nil, err
	}
	b := board{count: max(centre.n, 1)}
	next, tile := 0, 0
	for _, segment := range e.voices {
		for tile < len(e.scene.tiles) && e.scene.tiles[tile].middle.End <= segment.Start {
			tile++
		}
		i := tile
		for at := segment.Start; at < segment.End; {
			to := min(at+sceneStep, segment.End)
			for next < len(known) && known[next].End <= at {
				next++
			}
			for i+1 < len(e.scene.tiles) && e.scene.tiles[i].middle.End <= at {
				i++
			}
			var who uint64
			if next < len(known) && known[next].Start <= at {
				who = 1 << known[next].speaker
				to = min(to, known[next].End)
			} else if i < len(e.scene.tiles) {
				for local := e.scene.tiles[i].at(at); local != 0; local &= local - 1 {
					if s := voices[i][bits.TrailingZeros8(local)]; s >= 0 {
						who |= 1 << s
					}
				}
				if next < len(known) {
					to = min(to, max(known[next].Start, at+1))
				}
			}
			b.add(audio.Span{Start: at, End: to}, who)
			at = to
		}
		b.end()
	}
	return nearest(e.voices, b.pieces()), nil
}

// voice maps each local speaker of a tile to a speaker, −1 if unknown.
type voice [maxLocal]int

// localVoices finds the speaker of each local speaker of each tile. Where a
// local speaker is alone, it gets votes for the known piece's speaker; two
// local speakers of a window are never the same speaker. A local speaker that
// only occurs together with others is embedded, and belongs to the nearest
// remaining voice.
func localVoices(ctx context.Context, e *Embeddings, known []piece, centre matrix) ([]voice, error) {
	type stranger struct{ tile, local int }
	voices := make([]voice, len(e.scene.tiles))
	var strangers []stranger
	var spans []audio.Span
	votes := make([]int, maxLocal*centre.n)
	first := 0 // the first known piece that may touch a tile
	for i, t := range e.scene.tiles {
		for first < len(known) && known[first].End <= t.window.Start {
			first++
		}
		count(votes, t, known[first:], centre.n)
		voices[i] = elect(votes, centre.n)
		for local, s := range voices[i] {
			if s >= 0 || e.wide && t.apart(local, known[first:]) < leastOverlap {
				continue
			}
			if span, ok := t.longest(local); ok && e.embedder != nil {
				strangers, spans = append(strangers, stranger{i, local}), append(spans, e.part(span, windowSamples))
			}
		}
	}
	vectors, err := e.embed(ctx, spans)
	for k, v := range vectors {
		s := strangers[k]
		voices[s.tile][s.local] = nearestFree(v, centre, voices[s.tile])
	}
	return voices, err
}

// count counts, for each local speaker of a tile and each speaker, the samples
// in which only that local speaker is active during known pieces of the speaker.
func count(votes []int, t tile, known []piece, speakers int) {
	clear(votes)
	for _, p := range known {
		if p.Start >= t.window.End {
			break
		}
		for at := max(p.Start, t.window.Start); at < min(p.End, t.window.End); at += sceneStep {
			if who := t.at(at); bits.OnesCount8(who) == 1 {
				votes[bits.TrailingZeros8(who)*speakers+p.speaker] += sceneStep
			}
		}
	}
}

// elect assigns each local speaker the speaker with its most votes, unless
// another local speaker has more votes for that speaker.
func elect(votes []int, speakers int) (v voice) {
	for local := range v {
		v[local] = -1
	}
	for {
		best, most := -1, 0
		for i, n := range votes {
			if local, speaker := i/speakers, i%speakers; n > most && v[local] < 0 && !slices.Contains(v[:], speaker) {
				best, most = i, n
			}
		}
		if best < 0 {
			return v
		}
		v[best/speakers] = best % speakers
	}
}

// apart returns the samples of the tile's middle in which a local speaker is
// active outside the known pieces.
func (t tile) apart(local int, known []piece) (n int) {
	for at := t.middle.Start; at < t.middle.End; at += sceneStep {
		for len(known) > 0 && known[0].End <= at {
			known = known[1:]
		}
		if t.at(at)>>local&1 != 0 && (len(known) == 0 || known[0].Start > at) {
			n += sceneStep
		}
	}
	return n
}

// longest returns the longest stretch of the tile's window in which a local
// speaker is active; false if it is too short to identify a voice.
func (t tile) longest(local int) (audio.Span, bool) {
	var best audio.Span
	for at := t.window.Start; at < t.window.End; {
		if t.at(at)>>local&1 == 0 {
			at += sceneStep
			continue
		}
		from := at
		for at < t.window.End && t.at(at)>>local&1 != 0 {
			at += sceneStep
		}
		if to := min(at, t.window.End); to-from > best.Len() {
			best = audio.Span{Start: from, End: to}
		}
	}
	return best, best.Len() >= minVoiced
}

// nearestFree returns the speaker of the centroid nearest to a vector, among
// those without a local speaker of the tile yet; −1 if none is left.
func nearestFree(v []float32, centre matrix, taken voice) int {
	best, most := -1, float32(-2)
	for s := range centre.n {
		if c := dot1(v, centre.row(s)); c > most && !slices.Contains(taken[:], s) {
			best, most = s, c
		}
	}
	return best
}

// board collects the active speakers, step by step, and converts them to turns.
type board struct {
	steps []step
	out   []piece
	count int // speakers
}

// step is a stretch with the set of its speakers.
type step struct {
	audio.Span
	who uint64
}

// add appends a stretch and its speakers to the current segment.
func (b *board) add(s audio.Span, who uint64) {
	if n := len(b.steps); n > 0 && b.steps[n-1].who == who {
		b.steps[n-1].End = s.End
		return
	}
	b.steps = append(b.steps, step{s, who})
}

// end converts a segment's steps to turns: speech without a speaker goes to the
// previous speaker, or else to the next one, and stretches of a second voice
// shorter than leastOverlap are dropped. The next step begins another segment.
func (b *board) end() {
	last := uint64(0)
	for i := range b.steps {
		b.steps[i].who = cmp.Or(b.steps[i].who, last)
		last = lowest(b.steps[i].who)
	}
	for i := len(b.steps) - 1; i >= 0; i-- {
		b.steps[i].who = cmp.Or(b.steps[i].who, last)
		last = lowest(b.steps[i].who)
	}
	for speaker := range b.count {
		for i := 0; i < len(b.steps); i++ {
			if b.steps[i].who>>speaker&1 == 0 {
				continue
			}
			from := i
			alone := false
			for i < len(b.steps) && b.steps[i].who>>speaker&1 != 0 {
				alone = alone || bits.OnesCount64(b.steps[i].who) == 1
				i++
			}
			p := piece{audio.Span{Start: b.steps[from].Start, End: b.steps[i-1].End}, speaker}
			if alone || p.Len() >= leastOverlap {
				b.out = append(b.out, p)
			}
		}
	}
	b.steps = b.steps[:0]
}

func lowest(who uint64) uint64 { return who & -who }

// pieces returns the turns of all segments, in order of time.
func (b *board) pieces() []piece {
	slices.SortStableFunc(b.out, func(x, y piece) int { return cmp.Compare(x.Start, y.Start) })
	return b.out
}

// exclusive cuts overlapping turns so that one voice speaks at a time: the turn
// that began first lasts to its end.
func exclusive(turns []piece) []piece {
	var out []piece
	end := 0
	for _, p := range turns {
		if start := max(p.Start, end); start < p.End {
			out, end = append(out, piece{audio.Span{Start: start, End: p.End}, p.speaker}), p.End
		}
	}
	return out
}
