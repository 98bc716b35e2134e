package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Outcome is the outcome of a task's run.
type Outcome struct {
	// Result holds everything but the audio's MD5, which the task has, and its
	// length unless AudioDuration is longer (a recording with gaps). Ran
	// selects the parts for customers; segments keep their measures.
	Result spec.Result
	// Tier is the tier that ran and is charged; "" (no text) is charged like
	// the standard tier.
	Tier spec.Tier
	// Seconds is the decoded duration, charged and stored to 0.1 ms.
	Seconds float64
	// Waveform holds the peaks of audio.PCM.Peaks; empty if unknown.
	Waveform []byte
	// Audio is the stored sound of a live session, if any.
	Audio blob.Info
	// Recognized is nil unless the task asks for known voices.
	Recognized *Recognized
	// VoiceModel is the SHA-256 of the voices' speaker model; "" without any.
	VoiceModel string
}

// Recognized holds the speakers of a result whose voices the account knows, or
// the reason why none could be recognized.
type Recognized struct {
	Voices   []voices.Match `json:"voices"`
	Warnings []spec.Warning `json:"warnings"`
}

// WarningHeader returns the warnings as the value of the HTTP header Warning
// (RFC 7234, section 5.5), "" for none. It is pure ASCII.
func WarningHeader(list []spec.Warning) string {
	values := make([]string, len(list))
	for i, w := range list {
		values[i] = "299 - " + strconv.QuoteToASCII(w.Reason)
	}
	return strings.Join(values, ", ")
}

// A result is stored as one compressed file: a JSON object with everything but
// the segments, followed by an object for each segment. A long result can thus
// be read and sent without holding it in memory.
type (
	documentHead struct {
		Result     *resultFields // without segments
		Waveform   []byte        `json:",omitempty"`
		Recognized *Recognized   `json:",omitempty"`
	}
	// resultFields has all fields of a result in JSON.
	resultFields    spec.Result
	documentSegment struct {
		spec.Segment
		Measures *spec.Measures `json:"measures,omitempty"`
	}
)

const resultSuffix = ".json.zst"

// encoders pools encoders, which cost more than encoding most results.
var encoders = sync.Pool{New: func() any {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10)) // readers must hold the whole window
	if err != nil {
		panic(err) // the options are wrong
	}
	return encoder
}}

// length returns the recording's length with gaps, rounded like Seconds.
func (o Outcome) length() float64 { return max(o.Seconds, math.Round(o.Result.AudioDuration*1e4)/1e4) }

func (o Outcome) document() ([]byte, error) {
	var out bytes.Buffer
	compressed := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(compressed)
	compressed.Reset(&out)
	r, text := resultFields(o.Result), json.NewEncoder(compressed)
	r.Segments, r.NumSpeakersProbability, r.Tier = nil, nil, ""
	r.AudioDuration, r.Stats, r.Warnings = o.length(), spec.Stats{DecodedSeconds: o.Seconds}, spec.OfAudio(r.Warnings)
	err := text.Encode(documentHead{&r, o.Waveform, o.Recognized})
	for _, segment := range o.Result.Segments {
		if err != nil {
			break
		}
		err = text.Encode(documentSegment{segment, segment.Measures})
	}
	if err := errors.Join(err, compressed.Close()); err != nil {
		return nil, fmt.Errorf("the engine's result cannot be written: %w", err)
	}
	return out.Bytes(), nil
}

// Result is the result of a done task, open for reading. Close it.
type Result struct {
	Task Task
	Bill billing.Bill
	// Head is the result without its segments.
	Head       spec.Result
	Waveform   []byte      // empty if unknown
	Recognized *Recognized // nil unless the task asked for known voices

	file      io.ReadCloser
	body      *zstd.Decoder
	text      *json.Decoder
	corrected []spec.Segment // in place of the file's; nil without corrections
}

// Result opens the result of a done task. Errors wrap ErrNotFound, ErrForbidden
// or ErrNotDone.
func (s *Owners) Result(ctx context.Context, account, id string) (*Result, error) {
	t, key, err := s.done(ctx, account, id)
	if err != nil {
		return nil, err
	}
	bill, err := s.billing.Bill(ctx, account, id)
	if err != nil {
		return nil, err
	}
	r := &Result{Task: t, Bill: bill}
	if r.file, err = s.Config.Blobs.Open(ctx, key); err == nil {
		if err = r.begin(); err != nil {
			err = errors.Join(err, r.Close())
		}
	}
	if err != nil {
		if _, gone := s.Get(ctx, account, id); gone != nil {
			return nil, gone // deleted at this moment
		}
		return nil, s.wrap("result of "+id, err)
	}
	return r, nil
}

// begin reads everything but the segments.
func (r *Result) begin() (err error) {
	if r.body, err = zstd.NewReader(r.file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)); err != nil {
		return err
	}
	r.text = json.NewDecoder(r.body)
	var h documentHead
	if err := r.text.Decode(&h); err != nil {
		return err
	}
	if h.Result == nil {
		return errors.New("the stored file has no Result: another version of the program wrote it")
	}
	r.Head, r.Waveform, r.Recognized = spec.Result(*h.Result), h.Waveform, h.Recognized
	if r.Task.AudioMD5 != nil { // the MD5 of the whole file, which the engine may not have read
		r.Head.AudioMD5 = *r.Task.AudioMD5
	}
	return nil
}

// Segments reads the segments one by one, once, and stops after an error.
func (r *Result) Segments() iter.Seq2[spec.Segment, error] {
	return func(yield func(spec.Segment, error) bool) {
		for _, s := range r.corrected {
			if !yield(s, nil) {
				return
			}
		}
		for {
			var s documentSegment
			err := r.text.Decode(&s)
			if errors.Is(err, io.EOF) {
				return
			}
			s.Segment.Measures = s.Measures
			if err != nil {
				err = fmt.Errorf("tasks: result of %s: %w", r.Task.ID, err)
			}
			if !yield(s.Segment, err) || err != nil {
				return
			}
		}
	}
}

// Whole reads the segments and returns the complete result.
func (r *Result) Whole() (*spec.Result, error) {
	whole := r.Head
	for segment, err := range r.Segments() {
		if err != nil {
			return nil, err
		}
		whole.Segments = append(whole.Segments, segment)
	}
	return &whole, nil
}

// Close closes the file.
func (r *Result) Close() error {
	if r.body != nil {
		r.body.Close()
	}
	return r.file.Close()
}

// done returns a done task and the key of its result. Errors wrap ErrNotFound,
// ErrForbidden or ErrNotDone.
func (s *core) done(ctx context.Context, account, id string) (t Task, key string, err error) {
	t, _, key, err = s.get(ctx, account, id)
	if err == nil && t.Status != StatusDone {
		err = fmt.Errorf("%w: it is %s", ErrNotDone, t.Status)
	}
	return t, key, err
}

// Waveform returns the waveform of a done task, as audio.PCM.Peaks. Errors wrap ErrNotFound (also if the
// worker stored none), ErrForbidden or ErrNotDone.
func (s *Owners) Waveform(ctx context.Context, account, id string) ([]byte, error) {
	r, err := s.Result(ctx, account, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if len(r.Waveform) == 0 {
		return nil, fmt.Errorf("%w: no waveform of %s", ErrNotFound, id)
	}
	return r.Waveform, nil
}
