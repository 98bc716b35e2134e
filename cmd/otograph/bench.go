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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/models"
)

type benchCmd struct {
	Run  benchRunCmd  `cmd:"" default:"withargs" help:"Measure accuracy and cost on a manifest or a folder of recordings (the default). 'otograph bench live' measures live sessions."`
	Live benchLiveCmd `cmd:"" hidden:"" help:"Play recordings at their own speed to live sessions: latencies, accuracy, the number of sessions that keep up."`
}

type benchRunCmd struct {
	Manifest string   `arg:"" help:"Manifest (JSON objects or a table in CSV or TSV: file, text, language, offset, duration; JSON also rttm or turns, events, sentences, words), or a folder with a manifest.jsonl, with Kaldi's files, or with recordings and NAME.txt and NAME.rttm next to them."`
	Tier     []string `enum:"standard,optimized,cascade,auto" default:"auto" placeholder:"TIER" help:"Tiers to measure: standard, optimized, cascade (optimized, then standard where confidence is low), auto (by language, with the cascade)."`
	Compare  []string `placeholder:"PATH" sep:"none" help:"Also measure this model folder, or the chosen models with the recognizer in this file (repeat for more)."`
	Format   string   `short:"f" enum:"table,json,csv,html" default:"table" help:"Output format: table, json, csv or html."`
	Output   string   `short:"o" placeholder:"DIR" help:"Write report.txt, .json, .csv and .html into this folder and keep every measurement there, so that an interrupted run can continue."`
	Quiet    bool     `short:"q" help:"No progress."`

	Sample int `placeholder:"N" group:"Measurement" help:"Measure only N of the recordings, drawn by the seed."`
	Repeat int `default:"1" placeholder:"N" group:"Measurement" help:"Measure each recording N times and report the median."`
	Warmup int `default:"1" placeholder:"N" group:"Measurement" help:"Run the first recording N times before measuring."`
	Cores  int `placeholder:"N" group:"Measurement" help:"Cores to use; default: all."`

	KnownLanguage bool    `group:"Measurement" help:"Use the manifest's language instead of detecting it."`
	CascadeBelow  float64 `default:"0.85" placeholder:"CONFIDENCE" group:"Measurement" help:"Confidence below which the cascade decodes again (default 0.85)."`
	deviceFlag    `group:"Measurement"`

	Normalizer string  `enum:"words,letters,none,basic,whisper,openasr-2026" default:"words" placeholder:"NAME" group:"Scores" help:"Rules that bring texts into one form before they are compared: words (case and punctuation dropped), letters (also the spellings of Arabic and Persian and the spaces of Korean), none, basic, whisper or openasr-2026."`
	References string  `type:"path" placeholder:"PATH" group:"Scores" help:"References of the recordings in one file (SegLST, STM, CTM, RTTM), or in a folder with a file for each, instead of the manifest's."`
	By         string  `placeholder:"KEY,…" group:"Scores" help:"Divide the recordings by these keys of the manifest, such as condition,voice; language is one too."`
	Keywords   string  `type:"existingfile" placeholder:"FILE" group:"Scores" help:"Count the words or phrases in this file, one a line, in every text: precision, recall, F1."`
	Collar     float64 `default:"0.25" placeholder:"SECONDS" group:"Scores" help:"Time on both sides of speaker boundaries to exclude from the diarization error."`
	Seed       uint64  `default:"1" placeholder:"N" group:"Scores" help:"Seed of the confidence intervals."`

	otherSystems
	modelFlags
	optionFlags `embed:""`
}

func (c *benchRunCmd) Run(ctx context.Context) error {
	if c.Repeat < 1 || c.Warmup < 0 || !(c.Collar >= 0) {
		return &usageError{errors.New("--repeat must be at least 1, --warmup and --collar at least 0")}
	}
	if err := refuseAddress(c.Manifest); err != nil {
		return err
	}
	var references []string
	if c.References != "" {
		references = []string{c.References}
	}
	items, err := bench.Load(c.Manifest, references...)
	if err != nil {
		return err
	}
	if n, err := unused(c.Manifest, items); err != nil {
		return err
	} else if n > 0 && !c.Quiet {
		warn("otograph: %s: %s passed over, which are neither recordings nor their texts (NAME.txt or NAME.lab), turns (NAME.rttm) or evaluated times (NAME.uem)\n", c.Manifest, plural(n, "file"))
	}
	if items, err = sample(items, c.Sample, c.Seed); err != nil {
		return err
	}
	textless := len(slices.DeleteFunc(slices.Clone(items), func(it bench.Item) bool { return it.Text != nil }))
	if textless > 0 && textless < len(items) && !c.Quiet {
		warn("otograph: %s: %d of %s have no text, so that their words are not scored\n", c.Manifest, textless, plural(len(items), "recording"))
	}
	if c.Output != "" {
		outputs, inputs := append(reportFiles(c.Output), c.runFile()), append(c.modelFiles(), c.Manifest, c.References)
		if err := checkDistinct(outputs, append(inputs, itemFiles(items)...)); err != nil {
			return err
		}
	}
	systems, err := c.allSystems(items)
	if err != nil {
		return err
	}
	if err := driverFault(ctx, c.Device); err != nil {
		return fmt.Errorf("%w: run the command again with --device cpu", err)
	}
	line := newStatusLine(os.Stderr, c.Quiet)
	config := bench.Config{
		Items: items, Systems: systems, Repeat: c.Repeat, Warmup: c.Warmup,
		DER: bench.DEROptions{Collar: c.Collar}, Cores: c.Cores, Device: string(c.Device), Seed: c.Seed,
		Progress: benchProgress(line),
	}
	if c.By != "" {
		config.By = strings.Split(c.By, ",")
	}
	if c.Keywords != "" {
		text, err := textfile.Read(c.Keywords, 1<<20)
		if err != nil {
			return err
		}
		config.Keywords = slices.DeleteFunc(strings.Split(text, "\n"), func(k string) bool { return strings.TrimSpace(k) == "" })
	}
	if c.Normalizer != "words" {
		config.Normalizer = c.Normalizer
	}
	if c.Output != "" {
		config.RunFile = c.runFile()
		if err := os.MkdirAll(c.Output, 0o777); err != nil {
			return err
		}
	}
	report, err := bench.Run(ctx, config)
	line.clear()
	if err != nil {
		if ctx.Err() != nil && c.Output != "" {
			warn("The measurements so far are in %s: run the same command to continue.\n", config.RunFile)
		}
		return err
	}
	err = writeReport(report, c.Format, c.Output)
	for _, s := range report.Systems {
		if err == nil && s.Failed > 0 && s.Failed == len(s.Items) {
			err = errReported // the report has the reasons
		}
	}
	return err
}

// allSystems returns the chosen models, if any, and the other systems.
func (c *benchRunCmd) allSystems(items []bench.Item) (all []bench.System, err error) {
	if c.Own {
		if all, err = c.systems(); err != nil {
			return nil, err
		}
	}
	others, err := c.others(items)
	if err != nil {
		return nil, err
	}
	if all = append(all, others...); len(all) == 0 {
		return nil, &usageError{errors.New("--no-own: name another system with --system, --cmd or --hyp")}
	}
	return all, nil
}

// systems returns the chosen models and the models to compare, on each tier.
func (c *benchRunCmd) systems() ([]bench.System, error) {
	base, err := c.options()
	if err != nil {
		return nil, err
	}
	tiers := slices.Compact(slices.Sorted(slices.Values(c.Tier)))
	if len(tiers) != len(c.Tier) {
		return nil, &usageError{errors.New("--tier: a tier is listed twice")}
	}
	if base.Optimize != nil && !slices.Equal(c.Tier, []string{"auto"}) {
		return nil, &usageError{errors.New("--optimize and --tier: use only one of the two")}
	}
	first, err := c.open()
	if err != nil {
		return nil, err
	}
	sets := []*models.Set{first}
	names := []string{filepath.Base(cmp.Or(c.StandardModel, c.Models, "default"))}
	for _, path := range c.Compare {
		set, name, err := c.compared(path)
		if err != nil {
			return nil, fmt.Errorf("--compare: %w", err)
		}
		sets, names = append(sets, set), append(names, name)
	}
	for i, set := range sets[1:] { // other roles also affect the figures
		if roles := otherRoles(first, set); len(roles) > 0 {
			warn("%s and %s also differ in: %s\n", names[0], names[i+1], strings.Join(roles, ", "))
		}
	}
	var systems []bench.System
	for i, set := range sets {
		for _, tier := range c.Tier {
			opt := base
			if tier != "auto" {
				opt.Optimize = new(tier != "standard")
			}
			below := 0.0
			if tier == "cascade" || tier == "auto" {
				below = c.CascadeBelow
			}
			name := cmp.Or(modelName(set, tier), names[i])
			more := []string{tier, strconv.Itoa(len(systems) + 1)}
			if i > 0 {
				more[0] = names[i]
			}
			for _, m := range more {
				if slices.ContainsFunc(systems, func(s bench.System) bool { return s.Name == name }) {
					name = fmt.Sprintf("%s (%s)", name, m)
				}
			}
			systems = append(systems, bench.System{Name: name, Set: set, Options: opt, KnownLanguage: c.KnownLanguage, Cascade: below})
		}
	}
	return systems, nil
}

// benchProgress shows the current measurement.
func benchProgress(line *statusLine) func(bench.Step) {
	start, first := time.Now(), -1.0
	return func(s bench.Step) {
		if first < 0 {
			first = s.Done
		}
		text := fmt.Sprintf("%.0f of %.0f  %s  %s  %s", s.Done, s.Total, s.System, s.What, s.Item)
		if done := s.Done - first; done >= 1 {
			left := time.Duration(float64(time.Since(start)) / done * (s.Total - s.Done))
			text += fmt.Sprintf("  %s left", left.Round(time.Second))
		}
		line.draw(true, func(int) string { return text })
	}
}

// runFile returns the path of the stored measurements.
func (c *benchRunCmd) runFile() string { return filepath.Join(c.Output, "run.jsonl") }

// itemFiles returns the files of recordings and their references.
func itemFiles(items []bench.Item) (files []string) {
	for _, it := range items {
		base := mediafiles.Stem(it.Path)
		files = append(files, it.Path, base+".rttm", base+".uem")
		for _, ending := range mediafiles.TextEndings {
			files = append(files, base+ending)
		}
	}
	return files
}

const benchManifest = "manifest.jsonl"

// unused returns the number of files of a folder that are neither recordings
// nor references; 0 for a folder with a manifest.
func unused(manifest string, items []bench.Item) (n int, err error) {
	if info, err := os.Stat(manifest); err != nil || !info.IsDir() {
		return 0, err
	}
	for _, name := range []string{benchManifest, "wav.scp"} { // the second is Kaldi's
		if _, err := os.Stat(filepath.Join(manifest, name)); err == nil {
			return 0, nil
		}
	}
	_, others, err := mediafiles.Walk(manifest)
	if err != nil {
		return 0, err
	}
	used := itemFiles(items)
	slices.Sort(used)
	for _, path := range others {
		if _, found := slices.BinarySearch(used, path); !found {
			n++
		}
	}
	return n, nil
}

var reportForms = []struct {
	name, extension string
	write           func(*bench.Report, io.Writer) error
}{
	{"table", "txt", (*bench.Report).WriteTable},
	{"json", "json", (*bench.Report).WriteJSON},
	{"csv", "csv", (*bench.Report).WriteCSV},
	{"html", "html", (*bench.Report).WriteHTML},
}

// reportFiles returns the files that writeReport writes.
func reportFiles(dir string) (files []string) {
	for _, f := range reportForms {
		files = append(files, filepath.Join(dir, "report."+f.extension))
	}
	return files
}

// writeReport prints a report and, with a folder, writes all its formats there.
func writeReport(r *bench.Report, format, dir string) error {
	for i, f := range reportForms {
		if dir == "" && f.name != format {
			continue
		}
		var buf bytes.Buffer
		err := f.write(r, &buf)
		if err == nil && dir != "" {
			err = deliver(reportFiles(dir)[i], buf.Bytes(), f.name, false)
		}
		if err == nil && f.name == format {
			err = printDocument(buf.Bytes(), f.name, false)
		}
		if err != nil {
			return err
		}
	}
	if dir != "" && format == "table" {
		say("\nWritten to %s: report.html, report.json, report.csv, report.txt\n", strings.TrimSuffix(dir, "/"))
	}
	return nil
}
