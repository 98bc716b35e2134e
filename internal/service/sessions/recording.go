package sessions

import (
	"context"
	"math"

	"github.com/otograph/otograph/internal/files/mediafiles"
	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
)

// recordingName is the file name of a session's sound.
const recordingName = "live.wav"

// Feed converts sound to samples at keptRate, as *audio.Feed does.
type Feed interface {
	Convert(dst []float32, data []byte) []float32
	Flush(dst []float32) []float32
}

// keptRate is the sample rate of recordings, in Hz: audio.SampleRate.
const keptRate = 16000

// recording writes the sound of a session to the file store while it comes: WAV,
// mono, 16 bits at keptRate. A nil recording keeps nothing.
type recording struct {
	file   *blob.Writer // after a failed write, Commit returns its error
	format doors.Format
	feeds  func(doors.Format) (Feed, error)
	feed   Feed
	info   blob.Info
	err    error
}

// record begins the recording of a session, nil if nothing is to be kept.
func (s *Sessions) record(o Order, f doors.Format) (*recording, error) {
	t := s.config.Tasks
	if !o.Store || t.Config.KeepAudio <= 0 {
		return nil, nil
	}
	feed, err := s.config.Feed(f)
	if err != nil {
		return nil, &doors.EndError{Reason: doors.Invalid, Text: err.Error()}
	}
	file, err := t.NewAudio(context.Background(), recordingName)
	if err != nil {
		return nil, err
	}
	_, _ = file.Write(mediafiles.WAVHeader(keptRate, math.MaxUint32)) // the length is not known yet
	return &recording{file: file, format: f, feeds: s.config.Feed, feed: feed}, nil
}

// write adds sound.
func (r *recording) write(data []byte, f doors.Format) {
	if r == nil {
		return
	}
	var samples []float32
	if f != r.format {
		samples = r.feed.Flush(nil)
		if feed, err := r.feeds(f); err == nil { // on an error, the models' process ends the session
			r.feed, r.format = feed, f
		}
	}
	r.put(r.feed.Convert(samples, data))
}

func (r *recording) put(samples []float32) { _, _ = r.file.Write(mediafiles.Samples16(samples)) }

// finish ends the recording and adds it to the session's outcome. It may be
// called again.
func (r *recording) finish(o *tasks.Outcome) {
	if r == nil {
		return
	}
	if r.info.Key == "" && r.err == nil {
		r.put(r.feed.Flush(nil))
		r.info, r.err = r.file.Commit()
	}
	if o.Audio = r.info; r.err != nil {
		o.Result.Warnings = append(o.Result.Warnings, spec.Warning{Option: spec.WarnAudio, Reason: "the sound was not kept: the file store failed"})
	}
}

// drop discards a recording that no outcome has.
func (r *recording) drop() {
	if r != nil {
		r.file.Abort()
	}
}
