package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/internal/systems"
)

// cutParts returns the items with the parts of recordings as files of their
// own, so that every system gets the same sound. remove deletes the files.
func (c Config) cutParts(ctx context.Context) (items []Item, remove func(), err error) {
	remove = func() {}
	whole := func(it Item) bool { return it.Part == nil }
	read := func(s System) bool { return s.Engine == nil || !systems.Silent(s.Engine) }
	if !slices.ContainsFunc(c.Systems, read) || !slices.ContainsFunc(c.Items, func(it Item) bool { return !whole(it) }) {
		return c.Items, remove, nil
	}
	dir, err := os.MkdirTemp(c.Audio.TempDir, "otograph-bench-*")
	if err != nil {
		return nil, remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	items = slices.Clone(c.Items)
	var pcm *audio.PCM
	defer func() { err = errors.Join(err, closePCM(pcm)) }()
	opened := ""
	for i, it := range items {
		if whole(it) {
			continue
		}
		if it.Path != opened { // parts of a recording follow each other
			if err = closePCM(pcm); err != nil {
				return nil, remove, err
			}
			if pcm, err = audio.Open(ctx, audio.File(it.Path), c.Audio); err != nil {
				return nil, remove, err
			}
			opened = it.Path
		}
		items[i].Path = filepath.Join(dir, strconv.Itoa(i)+".wav")
		if err = writePart(items[i].Path, pcm, it); err != nil {
			return nil, remove, err
		}
	}
	return items, remove, nil
}

func closePCM(pcm *audio.PCM) error {
	if pcm == nil {
		return nil
	}
	return pcm.Close()
}

// writePart writes a part of a recording as a WAV file.
func writePart(path string, pcm *audio.PCM, it Item) error {
	from, to := int(it.Part.Start*audio.SampleRate), pcm.Len()
	if it.Part.Length > 0 {
		to = min(to, int((it.Part.Start+it.Part.Length)*audio.SampleRate))
	}
	if from >= to {
		return fmt.Errorf("%s: expected an offset within the recording, which lasts %.3f s, got %g s", it.Name, pcm.Duration(), it.Part.Start)
	}
	return systems.WriteWAV(path, pcm.Samples(from, to))
}
