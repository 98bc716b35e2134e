package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/spec"
)

// errRunFile marks a run file that belongs to another run or is damaged.
var errRunFile = errors.New("the run file does not fit")

// record is a line of a run file: the head, or one measurement.
type record struct {
	// Head identifies the run: a fingerprint of manifest, models and options.
	Head string `json:"head,omitempty"`

	System int    `json:"system"`
	Item   string `json:"item,omitempty"`

	Load    *float64 `json:"load,omitempty"`   // seconds to load the system's models
	Start   *Cost    `json:"start,omitempty"`  // of a program that is started for each recording
	Repeat  int      `json:"repeat,omitempty"` // from 1
	Cost    *Cost    `json:"cost,omitempty"`
	Outcome *outcome `json:"found,omitempty"` // with the first repeat
	Error   string   `json:"error,omitempty"` // the recording failed and is not retried
}

// outcome is the part of a result that the report needs.
type outcome struct {
	Tier     otograph.Tier  `json:"tier"`
	Language string         `json:"language"`
	Steps    []string       `json:"steps,omitempty"` // text, speakers, sounds
	Text     string         `json:"text"`            // a line for each segment
	Spans    [][2]float64   `json:"spans,omitempty"` // start and end of each line; nil without times
	Score    itemScore      `json:"score"`
	Warnings []spec.Warning `json:"warnings,omitempty"` // about the recording
}

// runFile stores measurements, one per line, as they are made.
type runFile struct {
	mu      sync.Mutex
	file    *os.File
	records map[place][]record
}

// place identifies the subject of a measurement: a recording on a system or,
// with an empty item, the system.
type place struct {
	system int
	item   string
}

// openRunFile opens or creates the run file at path. Measurements of the same
// head are reused; an incomplete last line is dropped. "" stores nothing.
func openRunFile(path, head string) (*runFile, error) {
	r := &runFile{records: map[place][]record{}}
	if path == "" {
		return r, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := 0 // bytes of complete lines
	for n := 1; ; n++ {
		line, _, ok := bytes.Cut(data[whole:], []byte("\n"))
		if !ok {
			break
		}
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, fmt.Errorf("%w: %s: line %d is not a measurement: %w", errRunFile, path, n, err)
		}
		if n == 1 && rec.Head != head {
			return nil, fmt.Errorf("%w: %s was made with another manifest, other models or other options: remove it, or use another folder", errRunFile, path)
		}
		if n > 1 {
			r.add(rec)
		}
		whole += len(line) + 1
	}
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	err = r.file.Truncate(int64(whole))
	if err == nil {
		_, err = r.file.Seek(0, io.SeekEnd)
	}
	if err == nil && whole == 0 {
		err = r.write(record{Head: head})
	}
	if err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return r, nil
}

// put stores a measurement.
func (r *runFile) put(rec record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(rec)
	return r.write(rec)
}

func (r *runFile) add(rec record) {
	at := place{rec.System, rec.Item}
	r.records[at] = append(r.records[at], rec)
}

func (r *runFile) write(rec record) error {
	if r.file == nil {
		return nil
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n')) // a single write, so that a kill leaves only the last line incomplete
	return err
}

// find returns the measurements of one recording on one system, in order; with
// an empty item, the system's own.
func (r *runFile) find(system int, item string) []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[place{system, item}]
}

func (r *runFile) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
