package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/internal/systems"
)

// cutParts returns the items with the parts of recordings as separate
// files, so that every system gets the same sound. remove deletes the files.
func (c Config) cutParts(ctx context.Context) (items []Item, remove func(), err error) {
	parts := map[string][]int{} // indices of items, by recording
	for i, it := range c.Items {
		if it.Part != nil {
			parts[it.Path] = append(parts[it.Path], i)
		}
	}
	reads := func(s System) bool { return s.Engine == nil || !systems.Silent(s.Engine) }
	if len(parts) == 0 || !slices.ContainsFunc(c.Systems, reads) {
		return c.Items, func() {}, nil
	}
	dir, err := os.MkdirTemp(c.Audio.TempDir, "otograph-bench-*")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	items = slices.Clone(c.Items)
	for _, recording := range slices.Sorted(maps.Keys(parts)) {
		if err := c.cut(ctx, recording, items, parts[recording], dir); err != nil {
			remove()
			return nil, nil, err
		}
	}
	return items, remove, nil
}

// cut writes the parts of one recording, which are the items with the indices
// at, as WAV files in dir, and changes the items' paths to them.
func (c Config) cut(ctx context.Context, recording string, items []Item, at []int, dir string) (err error) {
	pcm, err := audio.Open(ctx, audio.File(recording), c.Audio)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pcm.Close()) }()
	for _, i := range at {
		it := &items[i]
		from, to := int(it.Part.Start*audio.SampleRate), pcm.Len()
		if it.Part.Length > 0 {
			to = min(to, int((it.Part.Start+it.Part.Length)*audio.SampleRate))
		}
		if from >= to {
			return fmt.Errorf("%s: expected an offset within the recording, which lasts %.3f s, got %g s", it.Name, pcm.Duration(), it.Part.Start)
		}
		it.Path = filepath.Join(dir, strconv.Itoa(i)+".wav")
		if err := systems.WriteWAV(it.Path, pcm.Samples(from, to)); err != nil {
			return err
		}
	}
	return nil
}

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
