// Package bench measures recognizers: their accuracy against references and
// their cost. It reads manifests, scores results (words, turns, events,
// language, times), runs sets of models over a manifest with repeats, stores
// every measurement so that interrupted runs can continue, and renders reports.
package bench

import (
	"io"
	"time"

	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/bench/internal/systems"
)

// Parts of a manifest. A reference that is nil (or "", a language) is unknown.
type (
	// Item is one recording of a manifest: Name, Path, and the references Text
	// *string, Language, Turns []SpeakerTurn, Speakers *int, Sentences, Words
	// []TimedText, SentenceSpeakers, Events, and other Keys of the manifest.
	Item = datasets.Item
	// SpeakerTurn is spec.Turn: one speaker's speech; turns may overlap.
	SpeakerTurn = datasets.SpeakerTurn
	// TimedText is a word or a sentence: its Start and End in seconds, and Text.
	TimedText = datasets.TimedText
)

// Load reads a manifest file, or a folder: its manifest.jsonl if it has one,
// Kaldi's files, or else every recording in it, with the text in NAME.txt or
// NAME.lab, without the times and speakers that programs write beside it, the
// turns in NAME.rttm and the times in which they are scored in NAME.uem. A
// manifest is JSON or a table in CSV or TSV. A .txt file without JSON has one
// text per line. Errors name file and line. References are files (SegLST, STM,
// CTM or RTTM of all recordings) or folders with a file for each, which replace
// the manifest's.
func Load(path string, references ...string) ([]Item, error) {
	items, err := datasets.Load(path, systems.Words)
	for _, file := range references {
		if err == nil {
			items, err = withReferences(file, items)
		}
	}
	return items, err
}

// ReadRTTM reads all turns in NIST's RTTM format. Errors name the line.
func ReadRTTM(r io.Reader) ([]SpeakerTurn, error) { return datasets.ReadRTTM(r) }

type (
	// Engine is a recognizer other than Otograph's. Its methods are
	//
	//	// An error does not end the run. The Result's Ran states the filled fields.
	//	Transcribe(ctx context.Context, item Item) (*otograph.Result, Cost, error)
	//	Identity() string // an interrupted run only continues with the same one
	Engine = systems.Engine
	// Cost is the cost of one run of one recording: Audio, Wall, CPU, FirstSegment
	// in seconds, PeakRSS in bytes, Stats.
	Cost = systems.Cost
)

// Server returns a server with OpenAI's transcription endpoint, of which the
// address may have a query with form fields. key may be empty. limit is the
// longest time for an answer, perMinute the number of requests (0: any).
func Server(address, key string, limit time.Duration, perMinute int) (Engine, error) {
	return systems.Server(address, key, limit, perMinute)
}

// Command returns a program. In its command line, {file} is a recording and
// {out} a folder for its output; it prints text, JSON, subtitles, CTM or RTTM.
func Command(line string, limit time.Duration) (Engine, error) { return systems.Command(line, limit) }

// Files returns another program's transcripts of the items: a folder with a
// file for each item, or one file (JSON lines, SegLST, STM, CTM, RTTM, or a
// line for each item). The error for an item without a transcript is an
// fs.ErrNotExist.
func Files(path string, items []Item) (Engine, error) { return systems.Files(path, items) }
