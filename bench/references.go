package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/systems"
)

// withReferences returns the recordings with the references in a file (SegLST,
// STM, CTM or RTTM of all), or in a folder with one for each, instead of the
// manifest's: texts, sentences and words with their times, speakers and turns.
// Recordings without a reference there stay unchanged. There must be at least
// one reference.
func withReferences(path string, items []Item) ([]Item, error) {
	references, err := systems.References(path, items)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	found, missing := 0, error(nil)
	for i := range items {
		res, marks, err := references(items[i])
		if missing = cmp.Or(missing, err); errors.Is(err, fs.ErrNotExist) || err == nil && len(res.Segments)+len(res.DiarizeSegments) == 0 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, items[i].Name, err)
		}
		refer(&items[i], res)
		items[i].Marked, items[i].Ignored = marks.Text, marks.Ignored
		found++
	}
	if found == 0 {
		return nil, errors.Join(fmt.Errorf("%s: expected references of the recordings, such as %s, found none", path, items[0].Name), missing)
	}
	return items, nil
}

// refer uses a transcript as the reference of a recording.
func refer(it *Item, res *otograph.Result) {
	if res.Ran.ASR {
		it.SentenceSpeakers = nil
		var texts []string
		timed := !slices.ContainsFunc(res.Segments, func(s otograph.Segment) bool { return s.End <= s.Start })
		for _, s := range res.Segments {
			texts = append(texts, s.Text)
			if timed && res.Ran.Diarize {
				it.SentenceSpeakers = append(it.SentenceSpeakers, s.Speaker)
			}
		}
		if it.Sentences, it.Words = timedTexts(res); !timed {
			it.Sentences = nil
		}
		it.Text = new(strings.Join(texts, "\n"))
	}
	if res.Ran.Diarize {
		it.Turns, it.Speakers = append([]SpeakerTurn(nil), res.DiarizeSegments...), &res.NumSpeakers
	}
}
