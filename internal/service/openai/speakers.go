package openai

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// referencesName is the field with the recordings of known speakers.
const referencesName = "known_speaker_references"

// Limits of known_speaker_names[] and known_speaker_references[].
const (
	maxKnownSpeakers = 4
	maxSpeakerName   = 100 // characters
)

// checkSpeakers checks the known speakers' names against their recordings.
func (f *Form) checkSpeakers(references int) error {
	const field = "known_speaker_names[]"
	switch {
	case len(f.Speakers) == 0 && references == 0:
		return nil
	case f.format != formatDiarized:
		return badField(field, "needs response_format diarized_json")
	case len(f.Speakers) > maxKnownSpeakers:
		return badField(field, "at most %d are allowed, found %d", maxKnownSpeakers, len(f.Speakers))
	case len(f.Speakers) != references:
		return badField(tasks.ReferencesField, "expected one for each of %d names, found %d", len(f.Speakers), references)
	}
	for i, name := range f.Speakers {
		if !spec.Printable(name, maxSpeakerName) {
			return badField(field, "number %d must have 1 to %d printable characters", i+1, maxSpeakerName)
		}
		if slices.Contains(f.Speakers[:i], name) {
			return badField(field, "number %d is given twice", i+1)
		}
	}
	return nil
}

// readReferences passes on the recordings in a field: a data URL, or a JSON
// array of them. An empty field has no recordings.
func readReferences(from io.Reader, one func(io.Reader) error) error {
	text := bufio.NewReader(from)
	switch first, err := text.Peek(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil || first[0] != '[':
		return one(text)
	}
	err := jsonstream.ReadTexts(text, one)
	if errors.As(err, new(*jsonstream.Error)) || errors.Is(err, io.EOF) { // in the middle of the array
		return badField(tasks.ReferencesField, "expected a data URL or a JSON array of data URLs: %v", err)
	}
	return err
}

// readReference passes on the n-th recording (from 0) of a known speaker.
func readReference(from io.Reader, n int, reference func(io.Reader) error) error {
	text := bufio.NewReader(from)
	head, err := text.Peek(len(jsonstream.DataURL))
	if errors.As(err, new(*jsonstream.ReadError)) {
		return err
	}
	if !strings.EqualFold(string(head), jsonstream.DataURL) {
		return BadReference(n, errors.New("expected a data URL (data:audio/wav;base64,…)"))
	}
	audio, err := jsonstream.Base64(text, tasks.ReferencesField)
	if err == nil {
		err = reference(audio)
	}
	if errors.As(err, new(*jsonstream.Error)) {
		return BadReference(n, errors.New("invalid base64"))
	}
	return err
}

// BadReference refuses the n-th recording of a known speaker, counted from 0.
func BadReference(n int, why error) *Error {
	return &Error{Status: http.StatusBadRequest, Message: tasks.ReferenceRefusal(n, why.Error()), Param: tasks.ReferencesField, cause: why}
}
