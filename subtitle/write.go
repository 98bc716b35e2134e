package subtitle

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/files/textfile"
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

// formatInfo describes a format of Write.
type formatInfo struct {
	format            Format
	extension, medium string
	reading           bool // a text to read: one cue per sound
	comments          bool
}

var formats = []formatInfo{
	{FormatSRT, ".srt", "application/x-subrip; charset=utf-8", true, false},
	{FormatVTT, ".vtt", "text/vtt; charset=utf-8", true, true},
	{FormatTSV, ".tsv", "text/tab-separated-values; charset=utf-8", false, false},
	{FormatMarkdown, ".md", "text/markdown; charset=utf-8", true, false},
	{FormatDOCX, ".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", true, false},
	{FormatTextGrid, ".TextGrid", "text/plain; charset=utf-8", false, false},
	{FormatEAF, ".eaf", "application/xml", false, false},
	{FormatLabels, ".labels.txt", "text/plain; charset=utf-8", false, false},
	{FormatCTM, ".ctm", "text/plain; charset=utf-8", false, true},
	{FormatRTTM, ".rttm", "text/plain; charset=utf-8", false, true},
}

// Formats returns the formats that Write knows.
func Formats() []Format {
	out := make([]Format, len(formats))
	for i, f := range formats {
		out[i] = f.format
	}
	return out
}

// info describes the format; it is zero for an unknown one.
func (f Format) info() formatInfo {
	i := slices.IndexFunc(formats, func(info formatInfo) bool { return info.format == f })
	if i < 0 {
		return formatInfo{}
	}
	return formats[i]
}

// Extension returns the format's file name extension, "" for an unknown format.
func (f Format) Extension() string { return f.info().extension }

// MediaType returns the format's media type, "" for an unknown format.
func (f Format) MediaType() string { return f.info().medium }

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

// Write writes a result with its sounds in a format. The options are for SRT
// and VTT; NoSounds applies to every format. Formats to read (SRT, VTT,
// Markdown, DOCX) have one cue per sound, the others every sound event. name is
// the recording's file name, date the day of an EAF file.
//
// Documents and formats with comments state that a part is missing
// (spec.OfAudio); VTT and CTM also state that word times are interpolated.
// Errors wrap ErrNoWordTimes (CTM), ErrNoTurns or ErrFormat, or come from w.
func (o Options) Write(w io.Writer, f Format, name string, date time.Time, r *spec.Result) error {
	var cues []Cue
	info := f.info()
	switch {
	case o.NoSounds:
		cues = spoken(r)
	case info.reading:
		cues = Cues(r, true)
	default:
		cues = everything(r)
	}
	var notes []string
	if info.comments {
		notes = notesOf(f, r)
	}
	for _, w := range slices.Backward(spec.OfAudio(r.Warnings)) {
		if f == FormatMarkdown || f == FormatDOCX {
			cues = slices.Insert(cues, 0, Cue{Text: w.Reason, Event: true}) // before the text
		}
	}
	stem := mediafiles.Stem(name)
	switch f {
	case FormatSRT:
		return SRT(w, cues, o)
	case FormatVTT:
		o.Note = strings.Join(append(notes, o.Note), " ")
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
		return writeCTM(w, stem, cues, notes...)
	case FormatRTTM:
		if !r.Ran.Diarize {
			return ErrNoTurns
		}
		return writeRTTM(w, stem, r.DiarizeSegments, notes...)
	}
	return fmt.Errorf("%w %q", ErrFormat, f)
}

// estimateNote marks a result with interpolated word times, in the formats that
// have comments (VTT and CTM).
const estimateNote = "Some word times are estimated by letters, not measured."

// notesOf returns the comments for a format that supports them.
func notesOf(f Format, r *spec.Result) (notes []string) {
	if f != FormatRTTM && estimated(r) {
		notes = append(notes, estimateNote)
	}
	for _, w := range spec.OfAudio(r.Warnings) {
		notes = append(notes, w.Reason)
	}
	return notes
}

// estimated reports whether any word's times are interpolated.
func estimated(r *spec.Result) bool {
	return slices.ContainsFunc(r.Segments, func(s spec.Segment) bool {
		return slices.ContainsFunc(s.Words, func(w spec.Word) bool { return w.Interpolated })
	})
}

// templateTexts are the documents that templates write: TextGrid and Markdown,
// ELAN's annotations (EAF 3.0, schema http://www.mpi.nl/tools/elan/EAFv3.0.xsd),
// and the parts of a WordprocessingML package (ECMA-376, Office Open XML).
//
//go:embed *.txt eaf.xml all:docx
var templateTexts embed.FS

// templates parses the embedded texts once. A wrong one is a build error.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"after":       func(i int) int { return i + 1 },
		"escape":      markdownEscapes.Replace,
		"isolate":     textfile.Isolate,
		"mark":        mark,
		"quote":       func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }, // Praat's
		"rightToLeft": textfile.RightToLeft,
		"run": func(properties, text string) string { // of DOCX, with one set of properties
			return fmt.Sprintf(`<w:r><w:rPr>%s</w:rPr><w:t xml:space="preserve">%s</w:t></w:r>`, properties, html.EscapeString(text))
		},
		"seconds": seconds,
	}).ParseFS(templateTexts, "*.txt", "eaf.xml", "docx/*.xml", "docx/*/*.xml", "docx/*/.rels", "docx/*/*/*.rels"))
})

// execute writes a document by the template with a name.
func execute(w io.Writer, name string, content any) error {
	out := bufio.NewWriter(w)
	if err := templates().ExecuteTemplate(out, name, content); err != nil {
		return err
	}
	return out.Flush()
}

// markdownEscapes puts a backslash before the punctuation that CommonMark
// interprets inside a paragraph. Paragraphs never begin with the text itself,
// so block markers (lists, quotes, headings) need none.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "~", `\~`, "|", `\|`, "#", `\#`, "!", `\!`, "$", `\$`)
