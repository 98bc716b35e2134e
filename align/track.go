package align

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ctc"
	"github.com/otograph/otograph/internal/engine/decode"
)

// track joins the rows of all windows of a recording during an alignment.
type track struct {
	vocab   *ctc.Vocabulary
	words   []word
	windows []Recognition
	first   []int  // the first frame of each window, and the total
	marks   []mark // one per word, in frames of the track
	strays  []stray
}

func newTrack(windows []Recognition, words []word, vocab *ctc.Vocabulary) *track {
	t := &track{vocab: vocab, words: words, windows: windows, first: make([]int, len(windows)+1), marks: slices.Repeat([]mark{{first: -1, last: -1}}, len(words))}
	for i, h := range windows {
		t.first[i+1] = t.first[i] + h.Rows.len()
	}
	return t
}

// window returns the window that a frame belongs to.
func (t *track) window(f int) int {
	i, _ := slices.BinarySearch(t.first, f+1)
	return i - 1
}

func (t *track) frame(f int) frame {
	w := t.window(f)
	return frame{t.windows[w].Rows, f - t.first[w]}
}

// time returns the time of a frame's middle in seconds of the file.
func (t *track) time(f int) float64 {
	w := t.window(f)
	return t.windows[w].time((float64(f-t.first[w]) + 0.5) * t.windows[w].Rows.Shift)
}

func (t *track) lay(ctx context.Context, opt Options) error {
	var keys []string
	var spots []int
	for i, h := range t.windows {
		for _, w := range h.Words {
			keys = append(keys, keyOf(w.Text))
			spots = append(spots, t.first[i]+min(w.Row, max(h.Rows.len()-1, 0)))
		}
	}
	texts := make([]string, len(t.words))
	for i, w := range t.words {
		texts[i] = w.key
	}
	var parts []section
	for _, s := range sections(t.words, spots, match(texts, keys), t.first[len(t.windows)]) {
		parts = append(parts, bounded(s, t.words)...)
	}
	strays := make([][]stray, len(parts))
	free := sync.Pool{New: func() any { return new(tables) }}
	var large sync.Mutex
	var shared tables // guarded by large
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(opt.Parallel, 1))
	for i, part := range parts {
		group.Go(func() error {
			leave, err := asr.Options{Gate: opt.Gate}.Pass(ctx)
			if err != nil {
				return err
			}
			defer leave()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if part.cells(t.words) > largeCells {
				large.Lock()
				defer large.Unlock()
				strays[i] = t.section(part, &shared)
				return nil
			}
			mem := free.Get().(*tables)
			defer free.Put(mem)
			strays[i] = t.section(part, mem)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, s := range strays {
		t.strays = append(t.strays, s...)
	}
	return nil
}

func (t *track) section(s section, mem *tables) []stray {
	words, frames := t.words[s.words[0]:s.words[1]], make([]frame, s.frames[1]-s.frames[0])
	for i := range frames {
		frames[i] = t.frame(s.frames[0] + i)
	}
	l := newLattice(words, t.vocab)
	path, ok := l.path(frames, mem)
	if !ok {
		return nil
	}
	marks, strays := l.marks(words, path, frames)
	for i, m := range marks {
		if m.found() {
			m.first, m.last = m.first+s.frames[0], m.last+s.frames[0]
		}
		t.marks[s.words[0]+i] = m
	}
	for i := range strays {
		strays[i].first, strays[i].last = strays[i].first+s.frames[0], strays[i].last+s.frames[0]
		strays[i].before += s.words[0]
	}
	return strays
}

// leastProbability is the probability below which a word counts as missing,
// because the sound contradicts it.
const leastProbability = 0.02

func (t *track) alignment(pcm *audio.PCM, speech []audio.Span) *Alignment {
	a := &Alignment{Words: make([]Word, len(t.words))}
	spoken, index, spelled, sum := t.spoken(a)
	ctc.Refine(pcm, spoken, speech)
	for k, s := range spoken {
		a.Words[index[k]].Start, a.Words[index[k]].End = s.Start, s.End
	}
	a.share(speech)
	var before float64
	for i := range a.Words {
		if w := &a.Words[i]; w.Missing {
			w.Start, w.End = before, before
		}
		before = a.Words[i].End
	}
	if extra := t.extra(a); spelled+extra > 0 {
		a.Score = sum / float64(spelled+extra)
	}
	return a
}

// share divides the time of neighboring wild words in proportion to letters.
func (a *Alignment) share(speech []audio.Span) {
	for end := 0; end < len(a.Words); end++ {
		begin := end
		var run []decode.Word
		for ; end < len(a.Words) && a.Words[end].Wild && !a.Words[end].Missing; end++ {
			run = append(run, decode.Word{Word: asr.Word{Text: a.Words[end].Text}})
		}
		if len(run) < 2 {
			continue
		}
		decode.Align(run, a.Words[begin].Start, a.Words[end-1].End, speech)
		for i, w := range run {
			a.Words[begin+i].Start, a.Words[begin+i].End = w.Start, w.End
		}
	}
}

// spoken fills in a's words except for their times. It returns the words that
// are not missing with their indices, the number of words that the tokens can
// spell, and the sum of their probabilities.
func (t *track) spoken(a *Alignment) (spoken []ctc.Spoken, index []int, spelled int, sum float64) {
	for i, w := range t.words {
		m := t.marks[i]
		out := Word{Text: w.text, Wild: m.wild || w.wild && !m.found(), Missing: !m.found()}
		if m.tokens > 0 {
			out.Probability = math.Exp(m.logProb)
			out.Missing = out.Probability < leastProbability
		}
		if (w.letters != nil || m.tokens > 0) && !out.Wild {
			spelled++
			sum += out.Probability
		}
		if !out.Missing {
			from, to := t.time(m.first), t.time(m.last)
			spoken = append(spoken, ctc.Spoken{
				Text: w.text, First: from, Last: to,
				Fresh: m.first == 0 || t.window(m.first-1) != t.window(m.first) || t.quiet(m.first),
			})
			index = append(index, i)
		}
		a.Words[i] = out
	}
	return spoken, index, spelled, sum
}

// quiet reports whether there was no token in the half second before a frame.
func (t *track) quiet(f int) bool {
	row := t.frame(f)
	for k := 1; float64(k)*row.rows.Shift < ctc.Pause && row.at-k >= 0; k++ {
		if row.rows.blanks[row.at-k] < -0.7 {
			return false
		}
	}
	return true
}

// extra adds the speech outside of words and returns its number of words.
func (t *track) extra(a *Alignment) (count int) {
	type recognized struct {
		text  string
		frame int
	}
	var all []recognized
	for i, h := range t.windows {
		for _, w := range h.Words {
			all = append(all, recognized{strings.TrimSpace(w.Text), t.first[i] + w.Row})
		}
	}
	k := 0
	for _, s := range t.strays {
		e := Extra{Start: t.time(s.first), End: t.time(s.last)}
		for k < len(all) && all[k].frame < s.first {
			k++
		}
		var texts []string
		for ; k < len(all) && all[k].frame <= s.last; k++ {
			texts = append(texts, all[k].text)
		}
		if len(texts) == 0 {
			continue // a hesitation within a word
		}
		count += len(texts)
		e.Text = strings.Join(texts, " ")
		half := t.frame(s.first).rows.Shift / 2
		e.Start, e.End = e.Start-half, e.End+half
		a.Extra = append(a.Extra, e)
	}
	return count
}
