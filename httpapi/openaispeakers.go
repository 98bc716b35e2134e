package httpapi

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/spec"
)

// Limits of known_speaker_names[] and known_speaker_references[].
const (
	maxKnownSpeakers    = 4
	maxSpeakerName      = 100     // characters
	maxReference        = 8 << 20 // bytes of audio
	maxReferenceTypeLen = 256     // bytes before the comma
)

// checkSpeakers checks the names of known speakers against the number of
// recordings.
func (f *transcription) checkSpeakers(references int) error {
	const field = "known_speaker_names[]"
	switch {
	case len(f.names) == 0 && references == 0:
		return nil
	case f.format != formatDiarized:
		return badField(field, "needs response_format diarized_json")
	case len(f.names) > maxKnownSpeakers:
		return badField(field, "at most %d are allowed, found %d", maxKnownSpeakers, len(f.names))
	case len(f.names) != references:
		return badField(tasks.ReferencesField, "expected one for each of %d names, found %d", len(f.names), references)
	}
	for i, name := range f.names {
		if name == "" || utf8.RuneCountInString(name) > maxSpeakerName || strings.ContainsFunc(name, unicode.IsControl) {
			return badField(field, "number %d must have 1 to %d printable characters", i+1, maxSpeakerName)
		}
		if slices.Contains(f.names[:i], name) {
			return badField(field, "number %d is given twice", i+1)
		}
	}
	return nil
}

// dataURL reads what a data URL of base64 holds (RFC 2397).
func dataURL(from io.Reader) (io.Reader, error) {
	text := bufio.NewReaderSize(from, maxReferenceTypeLen)
	head, err := text.ReadSlice(',')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	kind := strings.ToLower(string(head))
	if !strings.HasPrefix(kind, "data:") || !strings.HasSuffix(kind, ";base64,") {
		return nil, errors.New("expected a data URL (data:audio/wav;base64,…)")
	}
	return base64.NewDecoder(base64.StdEncoding, text), nil
}

// referenceError is the refusal of the n-th recording of a known speaker,
// counted from 0. Failures of the service, and errors of the form itself, are
// returned unchanged.
func referenceError(n int, err error) error {
	var e *Error
	if errors.As(err, &e) || tasks.Outage(err) {
		return err
	}
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("invalid base64")
	}
	e = invalid("%s", tasks.ReferenceRefusal(n, err.Error()))
	e.Param = tasks.ReferencesField
	return e
}

// references are the recordings of a form's known speakers, stored for the task that
// is about to come into being.
type references struct {
	server *Server
	r      *request
	task   string   // its id, "" before there is a recording
	keys   []string // of what is stored
}

// keep stores a recording.
func (k *references) keep(from io.Reader) error {
	tools := k.server.cfg.Tasks
	if k.task == "" {
		id, err := tasks.NewID()
		if err != nil {
			return err
		}
		k.task = id
	}
	audio, err := tools.NewReference(k.r.Context(), k.task, len(k.keys))
	if err != nil {
		return err
	}
	n, err := copyAudio(audio, io.LimitReader(from, maxReference+1))
	if err == nil && n > maxReference {
		err = fmt.Errorf("longer than %d bytes", maxReference)
	}
	var info blob.Info
	if err == nil {
		info, err = audio.Commit()
	}
	if err != nil {
		audio.Abort()
		return err
	}
	k.keys = append(k.keys, info.Key)
	return nil
}

// check checks the recordings' lengths, where they can be told.
func (k *references) check() error {
	tools := k.server.cfg.Tasks
	if !tools.Probes() {
		return nil
	}
	for i, key := range k.keys {
		seconds, err := tools.Probe(k.r.Context(), k.r.who.Account, key, "reference")
		if gone := k.r.Context().Err(); gone != nil {
			return gone
		}
		// The worker rejects recordings that can't be probed.
		if err == nil && seconds > 0 && (seconds < spec.ShortestVoice-spec.VoiceSlack || seconds > spec.LongestVoice+spec.VoiceSlack) {
			return referenceError(i, fmt.Errorf("expected %d to %d s of audio, found %.1f s", spec.ShortestVoice, spec.LongestVoice, seconds))
		}
	}
	return nil
}

// drop deletes them.
func (k *references) drop() {
	if len(k.keys) > 0 {
		k.server.cfg.Tasks.DropReferences(k.r.Context(), k.task, len(k.keys))
	}
}
