package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
	"github.com/otograph/otograph/voices"
)

type transcribeCmd struct {
	Files   []string `arg:"" name:"file" help:"Recordings of any format, folders of them, or - for standard input."`
	Format  string   `short:"f" enum:"auto,text,txt,json,srt,vtt,tsv,md,docx,textgrid,eaf,labels,ctm,rttm,html" default:"auto" help:"auto (by the ending of -o, else text), text (or txt), json, srt, vtt, tsv, md, docx, textgrid (Praat), eaf (ELAN), labels (Audacity), ctm, rttm or html (a page to view and play the result)."`
	Output  string   `short:"o" placeholder:"PATH" help:"Output file, or output folder for several recordings or a folder of them; default: standard output."`
	Words   bool     `help:"Include the time and probability of every word, also in the optimized tier. The text format shows them."`
	Cascade bool     `default:"true" negatable:"" help:"Decode passages of low confidence again with the standard tier, if both tiers have models."`
	Resume  bool     `help:"With -o: skip recordings whose output is there, complete and not older, so that an interrupted run continues."`
	Quiet   bool     `short:"q" help:"No progress bar, no notices, no summary."`
	Cores   int      `placeholder:"N" help:"Cores to use; default: all."`

	deviceFlag

	Voices string `placeholder:"FILE" help:"Name speakers whose voices are in this register (see otograph voices)."`

	Channels string `enum:"mix,split,auto" default:"mix" help:"How to treat the recording's channels: mix combines them, split treats each of 2 to 8 as one speaker (CHANNEL_0, …), auto splits if they hold different voices, as in a call."`

	Track int `placeholder:"N" help:"Audio track of a film to transcribe, counted from 1; default: the one that the file marks as default, else the first."`

	EmbedAudio bool `help:"With --format html: embed the recording into the page, as Opus."`

	modelFlags
	subtitleFlags
	optionFlags `embed:""`

	in            inputs
	register      *identifier // nil without --voices
	layoutOptions subtitle.Options
}

// chooseTier selects the standard tier if no option selects a tier and knowsAll.
func (m *modelFlags) chooseTier(opt *otograph.Options, set *models.Set) {
	if opt.Optimize == nil && opt.OptimizeZh == nil && !m.Demo && knowsAll(set) {
		opt.Optimize = new(false)
	}
}

// knowsAll reports whether the set's standard model knows every language, or all but
// one (Cantonese came with large-v3): it makes fewer errors than the fast tier.
func knowsAll(set *models.Set) bool {
	m, ok := set.Role(models.RoleStandard)
	return ok && (len(m.Languages) == 0 || len(m.Languages) >= len(spec.Languages())-1)
}

func (c *transcribeCmd) Run(ctx context.Context) error {
	if c.Format == "txt" {
		c.Format = "text"
	}
	opt, err := c.options()
	if err != nil {
		return err
	}
	c.Output = outputFile(c.Output)
	if c.Format, err = formatOf(c.Format, c.Output, "text json srt vtt tsv md docx textgrid eaf labels ctm rttm html"); err != nil {
		return err
	}
	if err := checkContent(c.Format, opt); err != nil {
		return err
	}
	if c.Track < 0 {
		return &usageError{fmt.Errorf("--track %d: expected a number from 1", c.Track)}
	}
	if c.layoutOptions, err = c.subtitles(); err != nil {
		return err
	}
	if c.in, err = expandInputs(c.Files); err != nil {
		return err
	}
	files := c.in.files
	if err := errors.Join(c.checkOutput(files), c.checkHTML(files)); err != nil {
		return err
	}
	if files, err = c.unfinished(files); err != nil || len(files) == 0 {
		return err
	}
	if err := driverFault(ctx, c.Device); err != nil {
		warn("otograph: %v; the CPU computes\n", err)
	}
	set, err := c.openOrPull(ctx, opt)
	if err != nil {
		return err
	}
	if c.Voices != "" {
		if c.register, err = openIdentifier(c.Voices, set); err != nil {
			return err
		}
	}
	c.chooseTier(&opt, set)
	below := 0.0 // the confidence below which the standard tier decodes again
	if c.Cascade {
		below = otograph.CascadeBelow
	}
	p, err := otograph.Open(set, otograph.Config{
		Cores: c.Cores, Device: string(c.Device), OptimizedWords: c.Words || c.Format == "ctm", Cascade: &below,
		Audio: audio.Options{Track: c.Track},
	})
	if err != nil {
		return err
	}
	// p is not closed: the process ends, and freeing the models takes longer.
	if !c.Quiet {
		for _, note := range c.in.notes {
			warn("otograph: %s\n", note)
		}
	}
	return c.all(ctx, p, opt, files)
}

// all transcribes the recordings one by one and reports failures at the end.
func (c *transcribeCmd) all(ctx context.Context, p *otograph.Pipeline, opt otograph.Options, files []string) error {
	var failed []string
	for i, file := range files {
		if i > 0 && c.Output == "" && c.Format == "text" {
			say("\n")
		}
		if err := c.one(ctx, p, file, opt); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			warn("otograph: %v\n", err)
			failed = append(failed, filepath.Base(file))
		}
	}
	if len(files) > 1 && !c.Quiet {
		warn("%s\n", totals(len(files)-len(failed), failed))
	}
	if len(failed) > 0 {
		return errReported
	}
	return nil
}

// checkOutput returns an error for an impossible -o before hours of work.
func (c *transcribeCmd) checkOutput(files []string) error {
	if c.Output == "" {
		return nil
	}
	if strings.HasSuffix(c.Output, "/") { // a folder, also for one recording
		if err := os.MkdirAll(c.Output, 0o777); err != nil {
			return err
		}
	}
	var outputs []string
	for _, f := range files {
		outputs = append(outputs, c.outputPath(f))
	}
	if err := checkDistinct(outputs, slices.Concat(files, c.modelFiles(), []string{c.Voices})); err != nil {
		return err
	}
	if !c.in.several() {
		if err := checkWritable(outputs[0]); err != nil {
			return &usageError{fmt.Errorf("-o: %w", err)}
		}
		return nil
	}
	if info, err := os.Stat(c.Output); err == nil && !info.IsDir() {
		return &usageError{fmt.Errorf("-o %s: several recordings or a folder of them require a folder, and this is a file", c.Output)}
	}
	written := map[string]string{}
	for i, f := range files {
		out := outputs[i]
		if other, ok := written[out]; ok {
			return &usageError{fmt.Errorf("-o %s: %s and %s would both be written to %s", c.Output, other, f, out)}
		}
		written[out] = f
	}
	for out := range written {
		if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// unfinished returns the recordings that lack a complete output, for --resume. If a
// stage failed, the output has the time 1970; a power cut leaves an empty output.
func (c *transcribeCmd) unfinished(files []string) (left []string, err error) {
	if !c.Resume {
		return files, nil
	}
	if c.Output == "" {
		return nil, &usageError{errors.New("--resume: requires -o, whose files it looks for")}
	}
	for _, f := range files {
		out, err := os.Stat(c.outputPath(f))
		in, inErr := os.Stat(f)
		if err != nil || inErr != nil || out.Size() == 0 || out.ModTime().Before(in.ModTime()) {
			left = append(left, f)
		}
	}
	if n := len(files) - len(left); n > 0 && !c.Quiet {
		warn("otograph: %s skipped, whose output is there\n", plural(n, "recording"))
	}
	return left, nil
}

// outputPath returns the path of a result; empty means standard output.
func (c *transcribeCmd) outputPath(file string) string {
	if c.Output == "" {
		return ""
	}
	if info, err := os.Stat(c.Output); !c.in.several() && (err != nil || !info.IsDir()) {
		return c.Output
	}
	name := filepath.Base(file)
	if file == "-" {
		name = "stdin"
	}
	special := map[string]string{"text": ".txt", "textgrid": ".TextGrid", "labels": ".labels.txt"}
	extension := cmp.Or(special[c.Format], "."+c.Format)
	return filepath.Join(c.Output, c.in.under[file], strings.TrimSuffix(mediafiles.Stem(name), extension)+extension)
}

func (c *transcribeCmd) one(ctx context.Context, p *otograph.Pipeline, file string, opt otograph.Options) error {
	name := filepath.Base(file)
	if file == "-" {
		name = "standard input"
	}
	src, done, err := source(file)
	if err != nil {
		return err
	}
	defer done.Close()
	b := newBar(os.Stderr, name, c.Quiet)
	start := time.Now()
	var waveform []byte
	more := otograph.RunOptions{Progress: b.update, Channels: otograph.Channels(c.Channels)}
	if c.Format == "html" {
		more.Waveform = func(peaks []byte) { waveform = peaks }
	}
	res, err := p.Run(ctx, src, opt, more)
	took := time.Since(start)
	b.clear()
	if err != nil && (res == nil || ctx.Err() != nil) {
		return err
	}
	if err != nil && res.Ran == (otograph.Capabilities{}) {
		return fmt.Errorf("%s: %w", name, err)
	}
	printWarnings(name, res.Warnings, c.Quiet)
	if werr := c.write(ctx, file, name, res, waveform); werr != nil {
		return werr
	}
	if !c.Quiet && (c.Format == "text" || c.Output != "") {
		warn("%s\n", summary(name, res, took))
	}
	if stage := (*otograph.StageError)(nil); errors.As(err, &stage) {
		if info, failed := os.Stat(c.outputPath(file)); failed == nil && info.Mode().IsRegular() {
			err = errors.Join(err, os.Chtimes(c.outputPath(file), time.Time{}, time.Unix(0, 0))) // --resume does it again
		}
		return fmt.Errorf("%s: %w (what the other stages found has been written)", name, err)
	}
	return err
}

// write writes the rendered result to the destination of -o.
func (c *transcribeCmd) write(ctx context.Context, file, name string, res *otograph.Result, waveform []byte) error {
	path := c.outputPath(file)
	var buf bytes.Buffer
	style := textStyle{words: c.Words, color: path == "" && drawable(os.Stdout) && os.Getenv("NO_COLOR") == ""}
	matches := c.register.identify(res)
	for _, m := range matches {
		if m.Suggested && !c.Quiet {
			warn("%s: %s may be %s (%.0f %%)\n", name, m.Speaker, m.Name, 100*m.Probability)
		}
	}
	named := voices.Rename(res, matches)
	var err error
	switch c.Format {
	case "json":
		err = writeJSON(&buf, voicedResult{res, matches})
	case "text":
		err = writeText(&buf, named, style)
	case "html":
		err = c.writeHTML(ctx, &buf, file, name, named, waveform)
	default:
		err = c.writeSubtitle(&buf, name, named)
	}
	if err != nil {
		return err
	}
	if path == "" && c.in.several() && c.Format == "text" {
		say("==> %s <==\n", file)
	}
	return deliver(path, buf.Bytes(), c.Format, c.Format == "text")
}

// voicedResult is the specification's result, followed by the known voices, a
// mark of demonstration models and a report of the cascade, if there are any.
type voicedResult struct {
	result  *otograph.Result
	matches []voices.Match
}

// cascadeReport describes the text that the standard tier decoded again.
type cascadeReport struct {
	Segments        int     `json:"segments"`
	SpeechSeconds   float64 `json:"speech_seconds"`
	Doubtful        int     `json:"doubtful_segments"`
	DoubtfulSeconds float64 `json:"doubtful_seconds"`
	Replaced        int     `json:"replaced"`
	EncoderPasses   int     `json:"encoder_passes"`
	Seconds         float64 `json:"seconds"`
}

// MarshalJSON implements json.Marshaler.
func (v voicedResult) MarshalJSON() ([]byte, error) {
	out, err := json.Marshal(v.result)
	if err != nil {
		return nil, err
	}
	var cascade *cascadeReport
	if c := v.result.Stats.Cascade; c.Segments > 0 {
		cascade = &cascadeReport{
			c.Segments, hundredths(c.Seconds), c.Doubtful, hundredths(c.DoubtfulSeconds), c.Replaced, c.ASR.EncoderPasses, hundredths(c.Took),
		}
	}
	more, err := json.Marshal(struct {
		Voices  []voices.Match `json:"voices,omitempty"`
		Cascade *cascadeReport `json:"cascade,omitempty"`
	}{v.matches, cascade})
	if err != nil || len(more) == len("{}") {
		return out, err
	}
	out[len(out)-1] = ','
	return append(out, more[1:]...), nil
}

func hundredths(seconds float64) float64 { return math.Round(seconds*100) / 100 }
