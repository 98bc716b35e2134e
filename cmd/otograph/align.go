package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

type alignCmd struct {
	Audio    string `arg:"" help:"Recording of any format, or - for standard input."`
	Text     string `arg:"" help:"Text of the recording: a text file, - for standard input, or subtitles (SRT, WebVTT) to retime."`
	Format   string `short:"f" enum:"auto,json,srt,vtt,textgrid" default:"auto" help:"auto (by the ending of -o, else json), json (words with their times, what is missing, a score), srt, vtt or textgrid (Praat)."`
	Output   string `short:"o" placeholder:"FILE" help:"Output file; default: standard output."`
	Language string `short:"l" placeholder:"CODE" help:"Language of the speech (en, zh, deu); detected when not set."`
	Quiet    bool   `short:"q" help:"No progress bar, no notices."`
	Cores    int    `placeholder:"N" help:"Cores to use; default: all."`

	modelFlags
	layoutFlags

	layoutOptions subtitle.Options
}

// maxTextFile limits the text in bytes: five hours of speech have 0.3 MB.
const maxTextFile = 32 << 20

// Run aligns the text with the recording and writes the times of its words.
func (c *alignCmd) Run(ctx context.Context) (err error) {
	if c.layoutOptions, err = c.layout(); err != nil {
		return err
	}
	if c.Audio == "-" && c.Text == "-" {
		return &usageError{errOnce}
	}
	c.Output = outputFile(c.Output)
	if c.Format, err = formatOf(c.Format, c.Output, "json srt vtt textgrid"); err != nil {
		return err
	}
	if c.Output != "" {
		if err := checkDistinct([]string{c.Output}, append(c.modelFiles(), c.Audio, c.Text)); err != nil {
			return err
		}
		if err := checkWritable(c.Output); err != nil {
			return &usageError{fmt.Errorf("-o: %w", err)}
		}
	}
	if err := cmp.Or(refuseAddress(c.Audio), refuseAddress(c.Text)); err != nil {
		return err
	}
	script, words, cueOf, err := readText(c.Text)
	if err == nil && len(words) == 0 {
		err = fmt.Errorf("%s: %w", c.Text, otograph.ErrNoText)
	}
	if err != nil {
		return err
	}
	set, err := c.open()
	if err != nil {
		return err
	}
	p, err := otograph.Open(set, otograph.Config{Cores: c.Cores})
	if err != nil {
		return err
	}
	defer p.Close()
	src, done, err := source(c.Audio)
	if err != nil {
		return err
	}
	defer done.Close()
	b := newBar(os.Stderr, filepath.Base(c.Audio), c.Quiet)
	a, err := p.AlignWords(ctx, src, words, otograph.AlignOptions{Language: c.Language, Progress: func(done, total float64) {
		b.update(otograph.Progress{Stage: otograph.StageTranscribe, Fraction: done / max(total, done, 1)})
	}})
	b.clear()
	misfit := errors.Is(err, otograph.ErrMisfit)
	if err != nil && !misfit {
		return fmt.Errorf("%s: %w", filepath.Base(c.Audio), err)
	}
	printWarnings(filepath.Base(c.Audio), a.Warnings, false)
	if misfit {
		err = fmt.Errorf("%s: %s", c.Text, misfitOf(a))
		if c.Format != "json" {
			return fmt.Errorf("%w; nothing was written, --format json shows the details", err)
		}
	} else if !c.Quiet {
		c.report(a)
	}
	var buf bytes.Buffer
	if failed := c.render(&buf, a, script, cueOf); failed != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(deliver(c.Output, buf.Bytes(), c.Format, false), err)
}

// misfitOf explains a text that does not match: it is the wrong text, or the
// model cannot recognize the voice. The message quotes the recognized words,
// which show the cause.
func misfitOf(a *otograph.Alignment) string {
	var recognized []string
	for _, e := range a.Extra {
		recognized = append(recognized, strings.Fields(e.Text)...)
	}
	if len(recognized) == 0 {
		return fmt.Sprintf("the text does not match the recording (score %.2f): the model recognizes no words, so it cannot hear this voice or language (%s)", a.Score, a.Language)
	}
	return fmt.Sprintf("the text does not match the recording (score %.2f): the model's text is %q. If that is right, the text belongs to another recording; otherwise the model does not suit this voice or language (%s)", a.Score, clip(strings.Join(recognized, " "), maxRecognized), a.Language)
}

// maxRecognized limits the words in the message about a misfit, in characters.
const maxRecognized = 100

// cueLine is a line of times of SubRip and WebVTT.
var cueLine = regexp.MustCompile(`(?m)^\s*[\d:]+[.,]\d+\s*-->\s*[\d:]+[.,]\d+`)

// textForms are forms of texts with marks that are not read.
var textForms = []struct {
	name string
	mark *regexp.Regexp
}{
	{"Advanced SubStation", regexp.MustCompile(`(?m)^\[Script Info\]`)},
	{"a document of markup, such as TTML or SAMI", regexp.MustCompile(`(?i)^\s*<(\?xml|!doctype|html|tt|sami)\b`)},
	{"SubViewer (SBV)", regexp.MustCompile(`(?m)^\d+:\d\d:\d\d\.\d+,\d+:\d\d:\d\d\.\d+\s*$`)},
	{"MicroDVD", regexp.MustCompile(`(?m)^\{\d+\}\{\d+\}`)},
	{"Rich Text (RTF)", regexp.MustCompile(`^\{\\rtf`)},
	{"lyrics (LRC)", regexp.MustCompile(`(?m)^\[\d+:\d\d[.:]\d+\]`)},
	{"JSON", regexp.MustCompile(`^\s*[\[{]\s*["{]`)},
	{"a TextGrid", regexp.MustCompile(`^File type = "ooTextFile"`)},
}

// readText returns the words of a text or of subtitles, with the cue of each.
func readText(path string) (script *subtitle.Script, words []string, cueOf []int, err error) {
	var text string
	if path != "-" {
		text, err = textfile.Read(path, maxTextFile)
	} else if text, err = textfile.ReadFrom(os.Stdin, maxTextFile); err != nil {
		err = fmt.Errorf("standard input: %w", err)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	ext, timed := strings.ToLower(filepath.Ext(path)), cueLine.MatchString(text)
	for _, form := range textForms {
		if !timed && form.mark.MatchString(text) {
			return nil, nil, nil, fmt.Errorf("%s: expected a text, SubRip or WebVTT, found %s: save it as one of these", path, form.name)
		}
	}
	if !timed && ext != ".srt" && ext != ".vtt" {
		if first := strings.TrimSpace(textfile.LineTimes.FindString(text)); !strings.HasPrefix(first, "WARNING") { // a transcript
			text = textfile.LineTimes.ReplaceAllString(text, "")
		}
		return nil, align.Split(text), nil, nil
	}
	if script, err = subtitle.ParseScript([]byte(text)); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range script.Cues {
		for _, w := range align.Split(script.Text(i)) {
			words, cueOf = append(words, w), append(cueOf, i)
		}
	}
	return script, words, cueOf, nil
}

// report prints the differences between text and recording.
func (c *alignCmd) report(a *otograph.Alignment) {
	missing := 0
	for _, w := range a.Words {
		if w.Missing {
			missing++
		}
	}
	if missing > 0 {
		warn("otograph: %s: %s of %d not found in the recording\n", c.Text, plural(missing, "word"), len(a.Words))
	}
	var extra float64
	for _, e := range a.Extra {
		extra += e.End - e.Start
	}
	if extra > 0 {
		warn("otograph: %s: %.1f s of speech are not in the text\n", filepath.Base(c.Audio), extra)
	}
}

// render writes an alignment; script holds the subtitles, nil for a text.
func (c *alignCmd) render(w io.Writer, a *otograph.Alignment, script *subtitle.Script, cueOf []int) error {
	if c.Format == "json" {
		return writeJSON(w, alignmentJSON(a))
	}
	if script != nil && c.Format != "textgrid" {
		if lost := retime(script, a.Words, cueOf); lost > 0 && !c.Quiet {
			warn("otograph: %s: %s of %d not found in the recording: moved with their neighbors\n", c.Text, plural(lost, "cue"), len(script.Cues))
		}
		return script.Write(w, c.Format == "vtt")
	}
	cues := alignedCues(a.Words, cueOf)
	switch c.Format {
	case "srt":
		return subtitle.SRT(w, cues, c.layoutOptions)
	case "vtt":
		return subtitle.VTT(w, cues, c.layoutOptions)
	}
	return subtitle.TextGrid(w, a.AudioDuration, cues)
}

type alignedJSON struct {
	AudioDuration float64        `json:"audio_duration"`
	Language      string         `json:"language"`
	Score         float64        `json:"score"`
	Fits          bool           `json:"fits"`
	Words         []alignedWord  `json:"words"`
	Extra         []align.Extra  `json:"extra"`
	Warnings      []spec.Warning `json:"warnings,omitempty"` // about the recording
}

type alignedWord struct {
	Word        string   `json:"word"`
	Start       *float64 `json:"start"` // null for a word that is not in the audio
	End         *float64 `json:"end"`
	Probability *float64 `json:"probability"`         // null for a word that the model cannot spell
	Unspelled   bool     `json:"unspelled,omitempty"` // its time is estimated from the speech between its neighbors
}

func alignmentJSON(a *otograph.Alignment) alignedJSON {
	j := alignedJSON{AudioDuration: a.AudioDuration, Language: a.Language, Score: a.Score, Fits: a.Fits(), Words: []alignedWord{}, Extra: orEmpty(a.Extra), Warnings: a.Warnings}
	for i := range a.Words {
		w := &a.Words[i]
		out := alignedWord{Word: w.Text, Unspelled: w.Wild}
		if !w.Missing {
			out.Start, out.End = &w.Start, &w.End
			if !w.Wild {
				out.Probability = &w.Probability
			}
		}
		j.Words = append(j.Words, out)
	}
	return j
}
