package httpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// getResult handles GET /tasks/:id/result. The result is streamed. Its speakers
// keep their original names.
func (s *Server) getResult(w http.ResponseWriter, r *request, id string) error {
	result, _, err := s.corrected(r, id)
	if err != nil {
		return err
	}
	defer result.Close()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return writeResult(w, result)
}

// corrected opens the result of a task with its corrections, or without them if
// the query says original=true. names are those of the speakers.
func (s *Server) corrected(r *request, id string) (result *tasks.Result, names map[string]string, err error) {
	original, err := queryBool(r, "original")
	if err != nil {
		return nil, nil, err
	}
	if original {
		result, err = s.cfg.Tasks.Result(r.Context(), r.who.Account, id)
		return result, nil, err
	}
	return s.cfg.Tasks.Corrected(r.Context(), r.who.Account, id)
}

// writeResult writes the specification's Task result, and the additions that
// the task requested, one segment after the other.
func writeResult(to io.Writer, r *tasks.Result) error {
	o := newObjectWriter(to)
	head := &r.Head
	o.field("task_id", r.Task.ID)
	o.field("audio_duration", head.AudioDuration)
	o.field("audio_md5", head.AudioMD5)
	o.field("billing", r.Bill)
	if head.Ran.ASR {
		o.field("language", head.Language)
		o.field("language_probability", head.LanguageProbability)
		o.key("segments")
		for segment, err := range r.Segments() {
			if err != nil {
				return err
			}
			o.element(specified(segment))
		}
		o.endList()
		o.field("vad_segments", listed(head.VADSegments))
	}
	if head.Ran.Diarize {
		o.field("num_speakers", head.NumSpeakers)
		o.field("speaker_embeddings", listed(head.SpeakerEmbeddings))
		o.field("diarize_segments", listed(head.DiarizeSegments))
	}
	if head.Ran.AudioEvents {
		o.field("audio_events", listed(head.AudioEvents))
	}
	warnings := head.Warnings
	if recognized := r.Recognized; recognized != nil {
		o.field("voices", listed(recognized.Voices))
		warnings = slices.Concat(warnings, recognized.Warnings)
	}
	if len(warnings) > 0 || r.Recognized != nil {
		o.field("warnings", listed(warnings))
	}
	return o.end()
}

// specified returns a segment with only the specification's fields: its
// language and the marks of interpolated times stay in the stored result. It
// changes the words of s.
func specified(s spec.Segment) spec.Segment {
	s.Language = ""
	for i := range s.Words {
		s.Words[i].Interpolated = false
	}
	return s
}

// listed replaces a missing list with an empty one, because the specification
// has no null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// objectWriter writes a JSON object field by field.
type objectWriter struct {
	w        *bufio.Writer // keeps the first error of writing
	values   *json.Encoder // to w
	fields   int
	elements int
	err      error // the first of encoding
}

func newObjectWriter(to io.Writer) *objectWriter {
	w := bufio.NewWriter(to)
	return &objectWriter{w: w, values: json.NewEncoder(w)}
}

// key begins a field.
func (o *objectWriter) key(name string) {
	sign := ','
	if o.fields++; o.fields == 1 {
		sign = '{'
	}
	fmt.Fprintf(o.w, "%c%q:", sign, name)
	o.elements = 0
}

// field writes a field.
func (o *objectWriter) field(name string, value any) {
	o.key(name)
	o.value(value)
}

// element writes an element of the list that is the value of the last key.
func (o *objectWriter) element(value any) {
	sign := byte(',')
	if o.elements++; o.elements == 1 {
		sign = '['
	}
	_ = o.w.WriteByte(sign)
	o.value(value)
}

// endList ends the list that is the value of the last key.
func (o *objectWriter) endList() {
	if o.elements == 0 {
		_ = o.w.WriteByte('[')
	}
	_ = o.w.WriteByte(']')
}

// end ends the object and returns the first error.
func (o *objectWriter) end() error {
	_ = o.w.WriteByte('}')
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}

func (o *objectWriter) value(value any) {
	if o.err == nil {
		o.err = o.values.Encode(value)
	}
}

// getWaveform handles GET /tasks/:id/waveform, an addition to the
// specification.
func (s *Server) getWaveform(w http.ResponseWriter, r *request, id string) error {
	waveform, err := s.cfg.Tasks.Waveform(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/octet-stream", waveform)
	return nil
}
