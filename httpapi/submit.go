package httpapi

import (
	"io"

	"github.com/otograph/otograph/spec"
)

// Bounds on the texts of a submission, in characters.
const (
	maxURL            = 8192
	maxFilename       = 255
	maxCallbackSecret = 1024
	maxBatchItems     = 100
)

// submission is the body of POST /tasks.
type submission struct {
	audioURL       string
	filename       string
	options        spec.Options
	callbackURL    string
	callbackSecret string
	batch          bool
	allowTraining  bool

	given map[string]bool // names that were in the body
}

// readSubmission reads the body of POST /tasks. The audio of audio_base64 goes
// to audio as it comes, decoded, whatever stands before or behind it in the
// body; nothing of it is held in memory. When an error comes back, audio may
// have been called: what it stored has to be thrown away.
func readSubmission(body io.Reader, audio func(io.Reader) error) (*submission, error) {
	s := &submission{given: map[string]bool{}}
	mark := func(name string, read func(*value) error) func(*value) error {
		return func(v *value) error {
			s.given[name] = true
			return read(v)
		}
	}
	fields := map[string]func(*value) error{
		"audio_url":       func(v *value) error { return v.text(&s.audioURL, maxURL) },
		"audio_filename":  func(v *value) error { return v.text(&s.filename, maxFilename) },
		"options":         func(v *value) error { return v.options(&s.options) },
		"callback_url":    func(v *value) error { return v.text(&s.callbackURL, maxURL) },
		"callback_secret": func(v *value) error { return v.text(&s.callbackSecret, maxCallbackSecret) },
		"batch_mode":      func(v *value) error { return v.boolean(&s.batch) },
		"allow_training":  func(v *value) error { return v.boolean(&s.allowTraining) },
		"audio_base64": func(v *value) error {
			if s.given["audio_url"] {
				return bothSources()
			}
			r, err := v.base64()
			if err != nil {
				return err
			}
			return audio(r)
		},
	}
	for name, read := range fields {
		fields[name] = mark(name, read)
	}
	if err := readObject(body, maxCaptured, fields); err != nil {
		return nil, err
	}
	return s, s.check()
}

func bothSources() *Error {
	return invalid("audio_url and audio_base64: give one of the two, not both")
}

// check applies the rules between the fields.
func (s *submission) check() error {
	switch {
	case s.given["audio_url"] && s.given["audio_base64"]:
		return bothSources()
	case !s.given["audio_url"] && !s.given["audio_base64"]:
		return invalid("audio_url or audio_base64: one of the two is required")
	case s.given["audio_url"] && s.audioURL == "":
		return invalid("audio_url: must not be empty")
	case s.given["audio_base64"] && s.filename == "":
		return invalid("audio_filename: is required with audio_base64, to determine the extension")
	case s.given["audio_filename"] && s.filename == "":
		return invalid("audio_filename: must not be empty")
	case s.given["callback_url"] && s.callbackURL == "":
		return invalid("callback_url: must not be empty; leave it out when no callback is wanted")
	}
	if _, err := s.options.Effective(); err != nil {
		return optionsError(err)
	}
	return nil
}

// batchSubmission is the body of POST /tasks/batch.
type batchSubmission struct {
	urls           []string
	filenames      []string // nil, or one for each URL
	options        spec.Options
	callbackURL    string
	callbackSecret string
	allowTraining  bool
}

// readBatch reads the body of POST /tasks/batch.
func readBatch(body io.Reader) (*batchSubmission, error) {
	var b batchSubmission
	var batch, callback, urls bool
	err := readObject(body, maxBatchBody, map[string]func(*value) error{
		"audio_url":      func(v *value) error { urls = true; return v.texts(&b.urls, maxBatchItems, maxURL) },
		"audio_filename": func(v *value) error { return v.texts(&b.filenames, maxBatchItems, maxFilename) },
		"options":        func(v *value) error { return v.options(&b.options) },
		"callback_url": func(v *value) error {
			callback = true
			return v.text(&b.callbackURL, maxURL)
		},
		"callback_secret": func(v *value) error { return v.text(&b.callbackSecret, maxCallbackSecret) },
		"batch_mode":      func(v *value) error { return v.boolean(&batch) },
		"allow_training":  func(v *value) error { return v.boolean(&b.allowTraining) },
	})
	if err != nil {
		return nil, err
	}
	switch {
	case !batch:
		return nil, invalid("batch_mode: must be true for POST /tasks/batch")
	case !urls:
		return nil, invalid("audio_url: is required, an array of 1 to %d URLs", maxBatchItems)
	case len(b.urls) == 0:
		return nil, invalid("audio_url: is empty, 1 to %d URLs are expected", maxBatchItems)
	case b.filenames != nil && len(b.filenames) != len(b.urls):
		return nil, invalid("audio_filename: has %d entries but audio_url has %d; they must be equally long", len(b.filenames), len(b.urls))
	case callback && b.callbackURL == "":
		return nil, invalid("callback_url: must not be empty; leave it out when no callback is wanted")
	}
	if _, err := b.options.Effective(); err != nil {
		return nil, optionsError(err)
	}
	return &b, nil
}
