package systems

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/internal/system/fetch"
)

// maxFile limits a file with the transcripts of many recordings.
const maxFile = 512 << 20

// files holds another program's transcripts: a folder with one for each
// recording, or a file with all of them.
type files struct {
	path, sum string
	rows      map[string][]document // of a file, by the recordings' names without folders and extension
	names     map[string][]string   // the manifest's recordings, likewise, if no two may share a transcript
	lines     map[string]string     // of a file with one line per recording
	named     *namedLines           // of an RTTM, CTM or STM file
	alone     map[string]string     // the file's name by a part's name, if the manifest has no other part of the file
}

// References opens transcripts like Files. It returns a function that returns
// the transcript of a recording and its marks.
func References(path string, items []datasets.Item) (func(datasets.Item) (*otograph.Result, Marks, error), error) {
	f, err := open(path, items)
	if err != nil {
		return nil, err
	}
	return func(it datasets.Item) (*otograph.Result, Marks, error) {
		res, marks, _, err := f.transcribe(it)
		return res, marks, err
	}, nil
}

// Silent reports whether an engine reads transcripts instead of recordings.
func Silent(e Engine) bool {
	_, ok := e.(*files)
	return ok
}

// Files opens a folder of transcripts, each with the recording's name and its
// format's extension, or a file: JSON lines of the Open ASR Leaderboard or NeMo
// (audio_filepath, pred_text), SegLST, STM, CTM or RTTM of all recordings, or a
// text with a line per recording, which names it or has its place in the manifest.
// A transcript that fits several recordings in different folders is an error.
func Files(path string, items []datasets.Item) (Engine, error) {
	f, err := open(path, items)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		f.names[datasets.Stem(it.Name)] = append(f.names[datasets.Stem(it.Name)], it.Name)
	}
	return f, nil
}

func open(path string, items []datasets.Item) (*files, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, alone: map[string]string{}, names: map[string][]string{}}
	parts := map[string]int{}
	for _, it := range items {
		parts[it.Path]++
	}
	for _, it := range items {
		if it.Part != nil && parts[it.Path] == 1 {
			f.alone[it.Name] = strings.Replace(it.Name, datasets.PartName("", it.Part.Start), "", 1)
		}
	}
	if info.IsDir() {
		return f, nil
	}
	if f.sum, _, err = fetch.HashFile(path); err != nil {
		return nil, err
	}
	text, err := textfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n") // an empty one may be a recording's text
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") && !isRemark(text) {
		return f, f.index(text)
	}
	if f.named = groupLines(text, len(items) == 1); f.named != nil {
		return f, f.named.check(path, items)
	}
	if columns, ok := nistColumns[strings.ToLower(filepath.Ext(path))]; ok {
		return nil, fmt.Errorf("%s: expected lines of %s, with times from 0", path, columns)
	}
	if f.named = groupTexts(text, items); f.named != nil {
		return f, nil
	}
	if strings.EqualFold(filepath.Ext(path), ".trn") {
		return nil, fmt.Errorf("%s: expected lines of a text and another recording's name in parentheses", path)
	}
	if table, _, err := datasets.Table(strings.Join(lines, "\n")); err == nil {
		rows, err := json.Marshal(table)
		return f, errors.Join(err, f.index(string(rows)))
	}
	for len(lines) > len(items) && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) != len(items) {
		return nil, fmt.Errorf("%s: expected a line for each of the %d recordings, found %d", path, len(items), len(lines))
	}
	f.lines = map[string]string{}
	for i, it := range items {
		f.lines[it.Name] = strings.TrimSpace(lines[i])
	}
	return f, nil
}

// index parses rows and indexes them by recording.
func (f *files) index(text string) error {
	rows, err := documents([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.rows = map[string][]document{}
	for i, r := range rows {
		name := r.fileName()
		if name == "" {
			return fmt.Errorf("%s: row %d has no audio_filepath, file or session_id", f.path, i+1)
		}
		if r.PredText == nil && r.Session == "" {
			_, r.PredText = datasets.FileAndText(r.raw)
		}
		r.name = datasets.PartName(name, r.Offset)
		f.rows[datasets.Stem(r.name)] = append(f.rows[datasets.Stem(r.name)], r)
	}
	return nil
}

// Identity returns the path with the checksum of a file.
func (f *files) Identity() string { return f.path + " " + f.sum }

// noHypothesis is the error of a missing transcript, an fs.ErrNotExist.
type noHypothesis struct{}

// Error implements error.
func (noHypothesis) Error() string { return "there is no transcript of this recording" }

// Is reports whether target is fs.ErrNotExist.
func (noHypothesis) Is(target error) bool { return target == fs.ErrNotExist }

// Transcribe returns a recording's transcript, and the cost if it is stated.
func (f *files) Transcribe(_ context.Context, item datasets.Item) (*otograph.Result, Cost, error) {
	res, _, cost, err := f.transcribe(item)
	return res, cost, err
}

func (f *files) transcribe(item datasets.Item) (res *otograph.Result, marks Marks, cost Cost, err error) {
	switch {
	case f.rows != nil:
		res, cost, err = f.fromRows(item)
	case f.lines != nil:
		res = finish(&otograph.Result{Segments: []otograph.Segment{{Text: f.lines[item.Name]}}})
	case f.named != nil:
		res, marks, err = f.named.of(item.Name)
		for _, name := range datasets.NamesOf(item.Name) {
			if f.named.rows[name] != nil {
				err = cmp.Or(err, f.fits(item.Name, name))
			}
		}
	default:
		res, marks, err = f.fromFolder(item)
	}
	if whole := f.alone[item.Name]; whole != "" && whole != item.Name && errors.Is(err, fs.ErrNotExist) {
		return f.transcribe(datasets.Item{Name: whole})
	}
	return res, marks, cost, err
}

func (f *files) fromRows(item datasets.Item) (*otograph.Result, Cost, error) {
	rows := slices.Clone(f.rows[datasets.Stem(item.Name)])
	if len(rows) == 0 {
		return nil, Cost{}, noHypothesis{}
	}
	most := slices.MaxFunc(rows, func(a, b document) int { return cmp.Compare(likeness(item.Name, a.name), likeness(item.Name, b.name)) })
	rows = slices.DeleteFunc(rows, func(r document) bool { return likeness(item.Name, r.name) < likeness(item.Name, most.name) })
	for _, r := range rows {
		if r.name != most.name {
			return nil, Cost{}, fmt.Errorf("%w: both %s and %s fit %s", errOutput, r.name, most.name, item.Name)
		}
	}
	if err := f.fits(item.Name, most.name); err != nil {
		return nil, Cost{}, err
	}
	if rows[0].Session != "" {
		res, err := segLST(rows, "")
		return res, Cost{}, err
	}
	res, err := rows[0].result()
	cost := Cost{}
	if rows[0].Duration > 0 && rows[0].Time > 0 {
		cost.Audio, cost.Wall = rows[0].Duration, rows[0].Time
	}
	return res, cost, err
}

// likeness returns the number of equal components at the end of two names, the
// last without extension, and one more if the names are equal.
func likeness(a, b string) (n int) {
	x, y := strings.Split("/"+filepath.ToSlash(mediafiles.Stem(a)), "/"), strings.Split("/"+filepath.ToSlash(mediafiles.Stem(b)), "/")
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

// fits returns an error if a transcript's name fits another recording as well.
func (f *files) fits(recording, name string) error {
	for _, other := range f.names[datasets.Stem(recording)] {
		if mediafiles.Stem(other) != mediafiles.Stem(recording) && likeness(other, name) >= likeness(recording, name) {
			return fmt.Errorf("%w: %s fits both %s and %s", errOutput, name, recording, other)
		}
	}
	return nil
}

// fromFolder reads a recording's transcript, which may lie in fewer folders.
func (f *files) fromFolder(item datasets.Item) (res *otograph.Result, marks Marks, err error) {
	var missing error
	for name, deeper := mediafiles.Stem(item.Name), true; deeper; _, name, deeper = strings.Cut(filepath.ToSlash(name), "/") {
		if res, marks, err = f.under(item, name); !errors.Is(err, fs.ErrNotExist) {
			return res, marks, cmp.Or(err, f.fits(item.Name, name))
		}
		if missing == nil || errors.Unwrap(err) != nil { // it names a file
			missing = err
		}
	}
	return nil, marks, missing
}

// under reads the transcript of a name, and turns from a separate file.
func (f *files) under(item datasets.Item, name string) (res *otograph.Result, marks Marks, err error) {
	base := filepath.Join(f.path, filepath.FromSlash(name))
	for _, extension := range extensions {
		if extension == ".rttm" && res != nil && len(res.DiarizeSegments) > 0 || extension != ".rttm" && res != nil {
			continue
		}
		data, err := limited(base + extension)
		if errors.Is(err, fs.ErrNotExist) { // whisper.cpp keeps the recording's ending
			data, err = limited(base + mediafiles.Ending(item.Name) + extension)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, marks, err
		}
		found, foundMarks, err := parseMarked(data, item.Name)
		switch {
		case err != nil:
			return nil, marks, fmt.Errorf("%s: %w", base+extension, err)
		case res == nil:
			res, marks = found, foundMarks
		default:
			res.DiarizeSegments, res.NumSpeakers, res.Ran.Diarize = found.DiarizeSegments, found.NumSpeakers, found.Ran.Diarize
		}
	}
	if res != nil {
		return res, marks, nil
	}
	for _, ending := range strings.Fields(".TextGrid .eaf .tsv .csv .lrc .ass .sbv .xml .html .docx .md") {
		if _, err := os.Stat(base + ending); err == nil {
			return nil, marks, fmt.Errorf("%w: %s is not read, expected one of %s", noHypothesis{}, base+ending, strings.Join(extensions, " "))
		}
	}
	return nil, marks, noHypothesis{}
}
