package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/subtitle"
)

// writeSubtitle writes a result in one of subtitle's formats. name is the
// recording's file name, which some formats repeat.
func writeSubtitle(w io.Writer, format, name string, res *otograph.Result) error {
	cues := subtitle.Cues(res, true)
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	switch format {
	case "srt":
		return subtitle.SRT(w, cues, subtitle.Options{})
	case "vtt":
		return subtitle.VTT(w, cues, subtitle.Options{})
	case "tsv":
		return subtitle.TSV(w, cues)
	case "md":
		return subtitle.Markdown(w, stem, cues)
	case "docx":
		return subtitle.DOCX(w, stem, cues)
	case "textgrid":
		return subtitle.TextGrid(w, res.AudioDuration, cues)
	case "eaf":
		return subtitle.EAF(w, name, time.Now(), cues)
	case "labels":
		return subtitle.Labels(w, cues)
	case "ctm":
		if err := subtitle.CTM(w, stem, cues); err != nil {
			return fmt.Errorf("%s: ctm lists words with their times, which the standard tier finds (--optimize=false --timestamp-level=word): %w", name, err)
		}
		return nil
	case "rttm":
		if !res.Ran.Diarize {
			return fmt.Errorf("%s: rttm lists speaker turns, and diarization did not run (see --enable-diarize)", name)
		}
		return subtitle.RTTM(w, stem, subtitle.Turns(res))
	}
	return fmt.Errorf("unknown format %q", format)
}
