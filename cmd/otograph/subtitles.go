package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// writeSubtitle writes a result in one of subtitle's formats. name is the
// recording's file name, which some formats repeat.
func (c *transcribeCmd) writeSubtitle(w io.Writer, name string, res *otograph.Result) error {
	err := c.layoutOptions.Write(w, subtitle.Format(c.Format), name, time.Now(), res)
	switch {
	case errors.Is(err, subtitle.ErrNoWordTimes):
		return fmt.Errorf("%s: ctm lists words with their times, and the model or --timestamp-level=segment leaves them out: %w", name, err)
	case errors.Is(err, subtitle.ErrNoTurns):
		return fmt.Errorf("%s: rttm lists speaker turns, and diarization did not run (see --enable-diarize)", name)
	}
	return err
}

// checkContent returns an error if a format could have no content.
func checkContent(format string, o spec.Options) error {
	switch {
	case format == "ctm" && (o.EnableASR != nil && !*o.EnableASR || o.TimestampLevel != nil && *o.TimestampLevel == spec.TimestampSegment):
		return &usageError{errors.New("--format ctm lists words with their times: it requires --enable-asr and --timestamp-level=word")}
	case format == "rttm" && o.EnableDiarize != nil && !*o.EnableDiarize:
		return &usageError{errors.New("--format rttm lists speaker turns: it requires --enable-diarize")}
	}
	return nil
}

type layoutFlags struct {
	Columns int     `default:"42" placeholder:"42" group:"Subtitles" help:"Width of a line in srt and vtt; a Chinese character counts two. From 8."`
	Lines   int     `default:"2" placeholder:"2" group:"Subtitles" help:"Lines of a cue."`
	MaxCPS  float64 `name:"max-cps" default:"20" placeholder:"20" group:"Subtitles" help:"Reading speed in characters a second: a cue stays until it is read, where the next one is late enough."`
}

func (f layoutFlags) layout() (subtitle.Options, error) {
	switch {
	case f.Columns < 8:
		return subtitle.Options{}, &usageError{fmt.Errorf("--columns: expected at least 8, got %d", f.Columns)}
	case f.Lines < 1:
		return subtitle.Options{}, &usageError{fmt.Errorf("--lines: expected at least 1, got %d", f.Lines)}
	case !(f.MaxCPS > 0):
		return subtitle.Options{}, &usageError{fmt.Errorf("--max-cps: expected a number above 0, got %v", f.MaxCPS)}
	}
	return subtitle.Options{MaxColumns: f.Columns, MaxLines: f.Lines, MaxCPS: f.MaxCPS}, nil
}

// subtitleFlags configures further contents of the subtitle formats.
type subtitleFlags struct {
	layoutFlags

	SpeakerNames *bool `negatable:"" group:"Subtitles" help:"Name speakers in srt and vtt. Default: all but the only unnamed speaker of a recording."`
	Sounds       bool  `default:"true" negatable:"" group:"Subtitles" help:"Include sounds in subtitles, documents and files for editors."`
}

func (f subtitleFlags) subtitles() (subtitle.Options, error) {
	o, err := f.layout()
	o.NoSounds = !f.Sounds
	o.NoSpeakers = f.SpeakerNames != nil && !*f.SpeakerNames
	o.LoneSpeaker = f.SpeakerNames != nil && *f.SpeakerNames
	return o, err
}
