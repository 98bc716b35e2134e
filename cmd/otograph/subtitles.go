package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/subtitle"
)

// writeSubtitle writes a result in one of subtitle's formats. name is the
// recording's; RTTM repeats it on each line.
func writeSubtitle(w io.Writer, format, name string, res *otograph.Result) error {
	switch format {
	case "srt":
		return subtitle.SRT(w, res.Cues(true), subtitle.Options{})
	case "vtt":
		return subtitle.VTT(w, res.Cues(true), subtitle.Options{})
	case "tsv":
		return subtitle.TSV(w, res.Cues(true))
	case "rttm":
		if !res.Ran.Diarize {
			return fmt.Errorf("%s: rttm lists speaker turns, and diarization did not run (see --enable-diarize)", name)
		}
		return subtitle.RTTM(w, strings.TrimSuffix(name, filepath.Ext(name)), res.SpeakerTurns())
	}
	return fmt.Errorf("unknown format %q", format)
}
