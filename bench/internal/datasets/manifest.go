// Package datasets reads the recordings of a benchmark with their references:
// manifests, tables, folders, RTTM, UEM.
package datasets

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
)

// manifestName is the name of the manifest in a folder.
const manifestName = "manifest.jsonl"

// ErrManifest marks an invalid manifest; test for it with errors.Is.
var ErrManifest = errors.New("not a manifest")

// errPart is returned for an impossible offset or duration of a part.
var errPart = errors.New("offset and duration: expected seconds from 0, and a duration above 0")

// Item is one recording of a manifest with its references. A reference that is
// nil (or empty, for Language) is unknown and not scored.
type Item struct {
	Name string  // the recording as named in the manifest; unique
	Path string  // of the file
	Part *Part   `json:",omitempty"` // of the file; nil is all of it
	Text *string // spoken text; empty if there is no speech
	// Marked is Text with NIST's marks of alternatives and optional words, and
	// Ignored holds the times in which no text is scored.
	Marked   string        `json:",omitempty"`
	Ignored  [][2]float64  `json:",omitempty"`
	Language string        // ISO 639-1
	Turns    []SpeakerTurn // who speaks when
	Speakers *int          // number of speakers
	// Evaluated holds the times in which turns are scored; nil means all.
	Evaluated [][2]float64 `json:",omitempty"`
	Events    []EventSpan  // sound events; empty but not nil if there are none
	Sentences []TimedText  // the sentences' times
	Words     []TimedText  // the words' times
	// SentenceSpeakers holds the speaker of each of Sentences, nil if unknown.
	SentenceSpeakers []string
	// Keys holds the manifest's other keys with a text, a number or a boolean,
	// by which a report can group the recordings.
	Keys map[string]string
}

// Part is a part of a file, in seconds. A length of 0 reaches to its end.
type Part struct{ Start, Length float64 }

// PartName returns the name of the part of a recording from an offset:
// "a@4.5.flac" for a.flac.
func PartName(file string, offset float64) string {
	if offset == 0 {
		return file
	}
	base := mediafiles.Stem(file)
	return fmt.Sprintf("%s@%g%s", base, offset, strings.TrimPrefix(file, base))
}

// SpeakerTurn is a period of one speaker's speech, in a reference or in a
// hypothesis. Turns of one list may overlap (people talk simultaneously).
type SpeakerTurn = spec.Turn

// EventSpan is a sound with times in seconds; references state no confidence.
type EventSpan = spec.AudioEvent

// TimedText is a word or a sentence with its times in seconds.
type TimedText struct {
	Start, End float64
	Text       string
}

// manifestLine is an object of a manifest.
type manifestLine struct {
	File     string          `json:"file"`
	Offset   *float64        `json:"offset"` // of a part of the file, in seconds
	Duration *float64        `json:"duration"`
	Text     *string         `json:"text"`
	Language string          `json:"language"`
	RTTM     string          `json:"rttm"`
	UEM      string          `json:"uem"`
	Speakers json.RawMessage `json:"speakers"` // a number, or an object or list with one entry for each
	Turns    []SpeakerTurn   `json:"turns"`
	Events   *[]struct {
		Start float64 `json:"start"`
		End   float64 `json:"end"`
		Class string  `json:"class"`
		Label string  `json:"label"`
	} `json:"events"`
	Sentences []timedLine `json:"sentences"`
	Words     []timedLine `json:"words"`
	keys      map[string]string
}

// otherNames lists the names of a manifest's keys in manifests of NeMo, Common
// Voice, Hugging Face and others; in tables they are names of columns.
var otherNames = map[string][]string{
	"file":     {"path", "audio_filepath", "audio", "wav", "wav_filename", "file_name", "filename"},
	"text":     {"sentence", "transcript", "transcription"},
	"language": {"lang", "locale"},
	"offset":   nil, "duration": nil, "rttm": nil, "uem": nil, "speakers": nil, "turns": nil, "events": nil, "sentences": nil, "words": nil,
}

// ungrouped are keys by which a report cannot group the recordings.
var ungrouped = append([]string{"file", "text", "pred_text", "corrected", "rttm", "uem", "language", "speakers", "offset"}, slices.Concat(otherNames["file"], otherNames["text"])...)

// UnmarshalJSON reads keys by their other names too, ignoring case, stores those
// that the manifest does not define, and refuses what looks like a missing one.
func (l *manifestLine) UnmarshalJSON(data []byte) error {
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return PlainError(err)
	}
	given := slices.Sorted(maps.Keys(all))
	takeOtherNames(all, given)
	var missing []string
	for key, others := range otherNames {
		if _, set := all[key]; !set {
			if missing = append(missing, key); key == "text" {
				missing = append(missing, others...)
			}
		}
	}
	for _, key := range given {
		low := strings.ToLower(key)
		if n, err := strconv.ParseFloat(fmt.Sprint(all[key]), 64); err == nil && n > 0 && all["offset"] == nil && slices.Contains([]string{"start", "start_time", "begin"}, low) {
			return fmt.Errorf("key %q: expected offset and duration for a part of a recording", key)
		}
		like := slices.DeleteFunc(slices.Sorted(slices.Values(missing)), func(m string) bool { return strings.Contains(low, m) || low+"s" == m })
		if hint := spec.DidYouMean(key, like); hint != "" && !slices.Contains(slices.Concat(slices.Collect(maps.Values(otherNames))...), low) {
			return fmt.Errorf("unknown key %q%s", key, hint)
		}
		switch all[key].(type) {
		case string, float64, bool:
			if !slices.Contains(ungrouped, low) {
				if l.keys == nil {
					l.keys = map[string]string{}
				}
				l.keys[key] = fmt.Sprint(all[key])
			}
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	type plain manifestLine
	return PlainError(json.Unmarshal(data, (*plain)(l)))
}

// kinds name the types of keys that are not objects.
var kinds = map[reflect.Kind]string{reflect.String: "a text", reflect.Float64: "a number", reflect.Slice: "a list"}

// PlainError returns an error about a value of another type without the names
// of Go's types, and other errors unchanged.
func PlainError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := strings.TrimPrefix(fmt.Sprintf("key %q: ", wrong.Field), `key "": `)
		return fmt.Errorf("%sexpected %s, found a value of type %s", where, cmp.Or(kinds[wrong.Type.Kind()], "an object"), wrong.Value)
	}
	return err
}

// takeOtherNames sets keys that have other names among the given ones.
func takeOtherNames(all map[string]any, given []string) {
	for key, others := range otherNames {
		for _, name := range append([]string{key}, others...) {
			i := slices.IndexFunc(given, func(k string) bool { return strings.EqualFold(k, name) })
			if i < 0 || all[key] != nil {
				continue
			}
			if _, text := all[given[i]].(string); text || name == key {
				all[key] = all[given[i]]
			}
		}
	}
}

// FileAndText returns the recording that a row of a hypothesis names by a
// manifest's keys, "" if none, and its text.
func FileAndText(row json.RawMessage) (file string, text *string) {
	var all map[string]any
	_ = json.Unmarshal(row, &all) // another value has no keys
	takeOtherNames(all, slices.Sorted(maps.Keys(all)))
	file, _ = all["file"].(string)
	for _, key := range []string{"pred_text", "prediction", "hypothesis", "text"} {
		if s, ok := all[key].(string); ok {
			return file, &s
		}
	}
	return file, nil
}

type timedLine struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Text  string  `json:"text"`
	Word  string  `json:"word"`

	Speaker string `json:"speaker"`
}

// Load reads a manifest file, or a folder: its manifest.jsonl if it has one,
// Kaldi's files, or else every recording in it, with the text in NAME.txt or
// NAME.lab, the turns in NAME.rttm and the times in which they are scored in
// NAME.uem in the same folder. A .txt file without JSON has one text per line,
// as jiwer reads it; its recordings are named by line numbers and have no
// audio. words removes times, speakers and other marks from the text of NAME.txt.
// Errors wrap ErrManifest and name file and line.
func Load(path string, words func(text string) string) ([]Item, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if info.IsDir() {
		inside := filepath.Join(path, manifestName)
		if _, err := os.Stat(inside); err != nil {
			return loadFolder(path, words)
		}
		path = inside
	}
	if filepath.Ext(path) == ".txt" {
		if items, err := loadLines(path); err != nil || items != nil {
			return items, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	defer f.Close()
	items, err := readManifest(f, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return items, nil
}

// loadLines reads a file of a text per recording and line, nil for JSON.
func loadLines(path string) (items []Item, err error) {
	text, err := textfile.Read(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	text = strings.TrimRight(text, " \t\r\n")
	if text == "" || strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, nil
	}
	for i, line := range strings.Split(text, "\n") {
		items = append(items, Item{Name: fmt.Sprintf("line %d", i+1), Text: new(strings.TrimSpace(line))})
	}
	return items, nil
}

// maxManifest limits the size of a manifest or a reference in bytes, so that a
// recording passed by mistake fails immediately.
const maxManifest = 256 << 20

// readManifest reads a sequence of JSON objects, usually one per line, a list of
// them, or a table (readTable):
//
//	file       the recording, relative to dir; the only required key
//	offset     the start of a part of it; with duration, its length
//	text       its text
//	language   its language
//	rttm       a file with the speakers' turns, relative to dir; or
//	turns      [{start, end, speaker}]
//	uem        a file with the times in which turns are scored
//	speakers   their number
//	events     [{start, end, class}]
//	sentences  [{start, end, text}]
//	words      [{start, end, word}]
//
// Times are seconds: in files from the start of the recording, in the manifest
// from the start of its part. Errors wrap ErrManifest and name the line.
func readManifest(r io.Reader, dir string) ([]Item, error) {
	text, err := textfile.ReadFrom(r, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	var lines []numberedLine
	if begin := strings.TrimSpace(text); begin == "" || strings.ContainsAny(begin[:1], "[{") {
		lines, err = readObjects(text)
	} else {
		lines, err = readTable(text, dir)
	}
	if err != nil {
		return nil, err
	}
	var items []Item
	seen := map[string]int{}
	for _, l := range lines {
		item, err := l.item(dir)
		if err == nil && seen[item.Name] > 0 {
			err = fmt.Errorf("%s has been named on line %d already", item.Name, seen[item.Name])
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrManifest, l.number, err)
		}
		seen[item.Name] = l.number
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: it names no recordings", ErrManifest)
	}
	return items, nil
}

func (l manifestLine) item(dir string) (Item, error) {
	it := Item{Name: l.File, Path: l.File, Text: l.Text}
	if l.File == "" {
		return it, errors.New(`the key "file" is missing`)
	}
	if strings.Contains(l.File, "://") {
		return it, fmt.Errorf("%s: expected a file, got an address: download it first", l.File)
	}
	it.Path = within(dir, l.File)
	if l.Offset != nil {
		it.Part = &Part{Start: *l.Offset}
		if l.Duration != nil {
			it.Part.Length = *l.Duration
		}
		if !(it.Part.Start >= 0) || l.Duration != nil && !(it.Part.Length > 0) {
			return it, errPart
		}
		it.Name = PartName(l.File, it.Part.Start)
	}
	if l.Language != "" {
		code, ok := spec.NormalizeLanguage(l.Language)
		if !ok {
			return it, fmt.Errorf("language: unknown language %q", l.Language)
		}
		it.Language = code
	}
	for _, t := range l.Turns {
		if err := checkSpan("turns", t.Start, t.End); err != nil {
			return it, err
		}
		if t.Speaker == "" {
			return it, fmt.Errorf(`turns: the key "speaker" is missing from %g s`, t.Start)
		}
	}
	it.Turns = l.Turns
	if l.RTTM != "" {
		if l.Turns != nil {
			return it, errors.New("rttm and turns: use only one of the two")
		}
		turns, err := loadRTTM(within(dir, l.RTTM), l.File)
		if err != nil {
			return it, err
		}
		it.Turns = it.Part.turns(turns)
	}
	var err error
	if l.UEM != "" {
		if it.Evaluated, err = loadUEM(within(dir, l.UEM), l.File); err != nil {
			return it, err
		}
		it.Evaluated = it.Part.spans(it.Evaluated)
	}
	if it.Speakers, err = speakerCount(l.Speakers); err != nil {
		return it, err
	}
	if it.Speakers == nil && it.Turns != nil {
		it.Speakers = new(speakersOf(it.Turns))
	}
	if l.Events != nil {
		it.Events = []EventSpan{}
		for _, e := range *l.Events {
			name := cmp.Or(e.Class, e.Label)
			if _, ok := spec.LookupEventClass(name); !ok {
				return it, fmt.Errorf("events: there is no class %q; the nearest is %q", name, spec.NearestEventClass(name))
			}
			if err := checkSpan("events", e.Start, e.End); err != nil {
				return it, err
			}
			it.Events = append(it.Events, EventSpan{Start: e.Start, End: e.End, Class: name})
		}
	}
	if it.Sentences, err = timed("sentences", l.Sentences); err != nil {
		return it, err
	}
	it.Keys = l.keys
	if slices.ContainsFunc(l.Sentences, func(t timedLine) bool { return t.Speaker != "" }) {
		for _, t := range l.Sentences {
			it.SentenceSpeakers = append(it.SentenceSpeakers, t.Speaker)
		}
	}
	it.Words, err = timed("words", l.Words)
	return it, err
}

// turns returns the turns in a part, in times from the part's start.
func (p *Part) turns(list []SpeakerTurn) []SpeakerTurn {
	if p == nil {
		return list
	}
	out := []SpeakerTurn{}
	for _, t := range list {
		for _, s := range p.spans([][2]float64{{t.Start, t.End}}) {
			out = append(out, SpeakerTurn{Start: s[0], End: s[1], Speaker: t.Speaker})
		}
	}
	return out
}

// spans returns the spans in a part, in times from the part's start.
func (p *Part) spans(list [][2]float64) (out [][2]float64) {
	if p == nil {
		return list
	}
	for _, s := range list {
		start, end := max(0, s[0]-p.Start), s[1]-p.Start
		if p.Length > 0 {
			end = min(end, p.Length)
		}
		if end > start {
			out = append(out, [2]float64{start, end})
		}
	}
	return out
}

// within returns a path of the manifest, which is relative to dir.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

func timed(key string, lines []timedLine) ([]TimedText, error) {
	var out []TimedText
	for _, l := range lines {
		if err := checkSpan(key, l.Start, l.End); err != nil {
			return nil, err
		}
		if l.Text+l.Word == "" {
			return nil, fmt.Errorf(`%s: the key "text" or "word" is missing from %g s`, key, l.Start)
		}
		out = append(out, TimedText{l.Start, l.End, cmp.Or(l.Text, l.Word)})
	}
	return out, nil
}

// MaxSeconds limits the times of references: twelve days, longer than any
// recording. Events are scored second by second.
const MaxSeconds = 1e6

func checkSpan(key string, start, end float64) error {
	if !(start >= 0) || !(end >= start) || end > MaxSeconds {
		return fmt.Errorf("%s: expected 0 ≤ start ≤ end ≤ %g in seconds, got %g and %g", key, MaxSeconds, start, end)
	}
	return nil
}

// speakersOf returns the number of speakers of turns with a length.
func speakersOf(turns []SpeakerTurn) int {
	names := map[string]bool{}
	for _, t := range turns {
		if t.End > t.Start {
			names[t.Speaker] = true
		}
	}
	return len(names)
}

func speakerCount(raw json.RawMessage) (*int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var n int
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &n) == nil && n >= 0:
	case json.Unmarshal(raw, &list) == nil:
		n = len(list)
	case json.Unmarshal(raw, &object) == nil:
		n = len(object)
	default:
		return nil, errors.New("speakers: expected their number")
	}
	return &n, nil
}

// Stem returns a recording's name without folders and extension.
func Stem(name string) string { return mediafiles.Stem(filepath.Base(filepath.FromSlash(name))) }

// loadFolder returns a manifest of the recordings in and below a folder.
func loadFolder(dir string, words func(string) string) ([]Item, error) {
	if exists(filepath.Join(dir, kaldiRecordings)) {
		return loadKaldi(dir)
	}
	var items []Item
	files, _, err := mediafiles.Walk(dir)
	for _, path := range files {
		if err == nil {
			var it Item
			it, err = besideRecording(dir, path, words)
			items = append(items, it)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrManifest, dir, err)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: there are no recordings in %s", ErrManifest, dir)
	}
	return items, nil
}

// sampleNumbers matches TIMIT's text of a recording: its first and last sample,
// and the sentence.
var sampleNumbers = regexp.MustCompile(`^\s*0 \d{4,} (\pL[^\n]*\s*)$`)

// besideRecording returns the item of a recording in a folder, with the
// references in the files next to it.
func besideRecording(dir, path string, words func(string) string) (it Item, err error) {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return it, err
	}
	it = Item{Name: filepath.ToSlash(name), Path: path}
	base := mediafiles.Stem(path)
	for _, ending := range mediafiles.TextEndings {
		text, err := textfile.Read(base+ending, maxManifest)
		if err == nil {
			it.Text = new(words(strings.TrimSpace(sampleNumbers.ReplaceAllString(text, "$1"))))
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return it, err
		}
	}
	switch turns, err := loadRTTM(base+".rttm", path); {
	case err == nil:
		it.Turns, it.Speakers = turns, new(speakersOf(turns))
	case !errors.Is(err, fs.ErrNotExist):
		return it, err
	}
	if it.Evaluated, err = loadUEM(base+".uem", path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return it, err
}
