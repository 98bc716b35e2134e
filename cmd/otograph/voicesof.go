package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/pipeline/assemble"
	"github.com/otograph/otograph/spec"
)

// speakerOf returns the stretches of a recording in which only one speaker of
// its transcript speaks, end to end. The transcript is a result in JSON.
func speakerOf(ctx context.Context, recording, transcript, speaker string) (otograph.Source, error) {
	data, err := os.ReadFile(transcript)
	if err != nil {
		return nil, err
	}
	var res otograph.Result
	if err := json.Unmarshal(data, &res); err != nil {
		return nil, fmt.Errorf("%s: expected a result as JSON: %w", transcript, err)
	}
	pcm, err := audio.Open(ctx, audio.File(recording), audio.Options{})
	if err != nil {
		return nil, err
	}
	defer pcm.Close()
	printWarnings(filepath.Base(recording), assemble.AudioWarnings(pcm.Info()), false)
	if is := pcm.Info().MD5; is != "" && res.AudioMD5 != "" && is != res.AudioMD5 {
		return nil, fmt.Errorf("%s: expected the transcript of %s (MD5 %s), found that of another recording (%s)", transcript, recording, is, res.AudioMD5)
	}
	var samples []float32
	for _, t := range alone(res.DiarizeSegments, speaker) {
		samples = pcm.Append(samples, int(t.Start*audio.SampleRate), int(t.End*audio.SampleRate))
	}
	if len(samples) == 0 {
		speakers := map[string]bool{}
		for _, t := range res.DiarizeSegments {
			speakers[t.Speaker] = true
		}
		return nil, fmt.Errorf("%s: expected turns of %s alone, found those of %s", transcript, spec.Shorten(speaker), strings.Join(slices.Sorted(maps.Keys(speakers)), ", "))
	}
	return audio.Raw(samples, audio.SampleRate, 1), nil
}

// alone returns the parts of a speaker's turns outside all other turns. The
// turns are ordered by start.
func alone(turns []otograph.Turn, speaker string) (own []otograph.Turn) {
	for _, t := range turns {
		if t.Speaker != speaker {
			continue
		}
		for _, other := range turns {
			if other.Speaker == speaker || other.End <= t.Start || other.Start >= t.End {
				continue
			}
			if other.Start > t.Start {
				own = append(own, otograph.Turn{Start: t.Start, End: other.Start, Speaker: speaker})
			}
			t.Start = min(other.End, t.End)
		}
		if t.Start < t.End {
			own = append(own, t)
		}
	}
	return own
}
