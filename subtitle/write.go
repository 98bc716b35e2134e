package subtitle

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/mediafiles"
	"github.com/otograph/otograph/spec"
)

// Format names a file format for results.
type Format string

// The formats of Write.
const (
	FormatSRT      Format = "srt"
	FormatVTT      Format = "vtt"
	FormatTSV      Format = "tsv"
	FormatMarkdown Format = "md"
	FormatDOCX     Format = "docx"
	FormatTextGrid Format = "textgrid" // Praat
	FormatEAF      Format = "eaf"      // ELAN
	FormatLabels   Format = "labels"   // Audacity
	FormatCTM      Format = "ctm"
	FormatRTTM     Format = "rttm"
)

// formats holds the formats of Write with their files' extensions and media
// types.
var formats = []struct {
	format            Format
	extension, medium string
}{
	{FormatSRT, ".srt", "application/x-subrip; charset=utf-8"},
	{FormatVTT, ".vtt", "text/vtt; charset=utf-8"},
	{FormatTSV, ".tsv", "text/tab-separated-values; charset=utf-8"},
	{FormatMarkdown, ".md", "text/markdown; charset=utf-8"},
	{FormatDOCX, ".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{FormatTextGrid, ".TextGrid", "text/plain; charset=utf-8"},
	{FormatEAF, ".eaf", "application/xml"},
	{FormatLabels, ".labels.txt", "text/plain; charset=utf-8"},
	{FormatCTM, ".ctm", "text/plain; charset=utf-8"},
	{FormatRTTM, ".rttm", "text/plain; charset=utf-8"},
}

// Formats returns the formats that Write knows.
func Formats() []Format {
	out := make([]Format, len(formats))
	for i, f := range formats {
		out[i] = f.format
	}
	return out
}

// Extension returns the format's file name extension, "" for an unknown format.
func (f Format) Extension() string {
	for _, known := range formats {
		if known.format == f {
			return known.extension
		}
	}
	return ""
}

// MediaType returns the format's media type, "" for an unknown format.
func (f Format) MediaType() string {
	for _, known := range formats {
		if known.format == f {
			return known.medium
		}
	}
	return ""
}

// Errors of Write.
var (
	// ErrNoTurns is returned for RTTM when diarization did not run.
	ErrNoTurns = errors.New("no speaker turns")
	// ErrFormat is returned for an unknown format.
	ErrFormat = errors.New("unknown format")
)

// WriteFile is [Options.WriteFile] with the default layout.
func WriteFile(file string, r *spec.Result) error { return Options{}.WriteFile(file, r) }

// Write is [Options.Write] with the default layout.
func Write(w io.Writer, f Format, name string, date time.Time, r *spec.Result) error {
	return Options{}.Write(w, f, name, date, r)
}

// WriteFile writes a result with its sounds to a file. The file's extension
// selects the format, and its name replaces the recording's in formats that
// state one. Errors name the file and wrap ErrFormat for an unknown extension.
func (o Options) WriteFile(file string, r *spec.Result) error {
	var format Format
	var endings []string
	for _, f := range formats {
		if strings.HasSuffix(strings.ToLower(file), strings.ToLower(f.extension)) {
			format = f.format
		}
		endings = append(endings, f.extension)
	}
	if format == "" {
		return fmt.Errorf("%s: %w: expected a name that ends with %s", file, ErrFormat, strings.Join(endings, ", "))
	}
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := o.Write(w, format, filepath.Base(file), time.Now(), r); err != nil {
		_ = w.Close()
		return errors.Join(fmt.Errorf("%s: %w", file, err), os.Remove(file))
	}
	return w.Close()
}

// Write writes a result with its sounds in a format. The options configure the
// layout of SRT and VTT; NoSounds applies to every format. Formats to read
// (SRT, VTT, Markdown, DOCX) have one cue per sound, the others every sound
// event. name is the recording's file name, which some formats repeat, and date
// the day of an EAF file.
//
// Results of demonstration models are marked (see DemoNote), and so are
// interpolated word times (see EstimateNote). Documents and formats with
// comments also state that a part of the recording is missing (spec.OfAudio).
// Errors wrap ErrNoWordTimes (CTM), ErrNoTurns or ErrFormat, or come from w.
func (o Options) Write(w io.Writer, f Format, name string, date time.Time, r *spec.Result) error {
	if f == FormatRTTM && !r.Ran.Diarize {
		return ErrNoTurns
	}
	cues := o.cues(f, r)
	if f == FormatCTM { // before writing the note
		if err := checkWordTimes(cues); err != nil {
			return err
		}
	}
	notes := notesOf(f, r)
	if r.Demo && !slices.Contains(notes, DemoNote) {
		cues = slices.Insert(cues, 0, demoCue(f, r.AudioDuration, cues))
	}
	for _, w := range spec.OfAudio(r.Warnings) {
		if f == FormatMarkdown || f == FormatDOCX { // at the end, where the rest may be missing
			cues = append(cues, Cue{Start: r.AudioDuration, End: r.AudioDuration, Text: w.Reason, Event: true})
		}
	}
	if f == FormatVTT {
		o.Note = strings.Join(append(notes, o.Note), " ")
	} else {
		for _, note := range notes {
			if _, err := fmt.Fprintf(w, ";; %s\n", note); err != nil {
				return err
			}
		}
	}
	stem := mediafiles.Stem(name)
	switch f {
	case FormatSRT:
		return SRT(w, cues, o)
	case FormatVTT:
		return VTT(w, cues, o)
	case FormatTSV:
		return writeTSV(w, cues)
	case FormatMarkdown:
		return writeMarkdown(w, stem, cues)
	case FormatDOCX:
		return writeDOCX(w, stem, cues)
	case FormatTextGrid:
		return TextGrid(w, r.AudioDuration, cues)
	case FormatEAF:
		return writeEAF(w, name, date, cues)
	case FormatLabels:
		return writeLabels(w, cues)
	case FormatCTM:
		return writeCTM(w, stem, cues)
	case FormatRTTM:
		return writeRTTM(w, stem, turnsOf(r))
	}
	return fmt.Errorf("%w %q", ErrFormat, f)
}

// cues returns the cues that a format writes for a result.
func (o Options) cues(f Format, r *spec.Result) []Cue {
	if o.NoSounds {
		return spoken(r)
	}
	if slices.Contains([]Format{FormatSRT, FormatVTT, FormatMarkdown, FormatDOCX}, f) {
		return Cues(r, true)
	}
	return everything(r)
}

// notesOf returns the comments for a format that supports them.
func notesOf(f Format, r *spec.Result) (notes []string) {
	if f != FormatVTT && f != FormatCTM && f != FormatRTTM {
		return nil
	}
	if r.Demo {
		notes = append(notes, DemoNote)
	}
	if f != FormatRTTM && estimated(r) {
		notes = append(notes, EstimateNote)
	}
	for _, w := range spec.OfAudio(r.Warnings) {
		notes = append(notes, w.Reason)
	}
	return notes
}
