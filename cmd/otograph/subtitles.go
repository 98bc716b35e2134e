package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/otograph/otograph"
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
