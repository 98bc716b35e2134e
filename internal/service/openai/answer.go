package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// Answer returns the response to a form, with its media type.
func (f *Form) Answer(result spec.Result) (mediaType string, body []byte, err error) {
	text := wholeText(result)
	var buf bytes.Buffer
	var answer any
	switch f.format {
	case formatText:
		return "text/plain; charset=utf-8", []byte(text + "\n"), nil
	case formatSRT:
		err = subtitle.SRT(&buf, subtitle.Cues(&result, false), subtitle.Options{})
		return "application/x-subrip; charset=utf-8", buf.Bytes(), err
	case formatVTT:
		err = subtitle.VTT(&buf, subtitle.Cues(&result, false), subtitle.Options{})
		return "text/vtt; charset=utf-8", buf.Bytes(), err
	case formatVerbose:
		answer = verbose(f, result, text)
	case formatDiarized:
		out := diarizedJSON{Task: "transcribe", Duration: result.AudioDuration, Text: text, Segments: []diarizedSegment{}, Usage: used(result)}
		for _, seg := range result.Segments {
			out.Segments = append(out.Segments, diarizedSegmentOf(seg))
		}
		answer = out
	default:
		out := plainJSON{Text: text, Usage: used(result)}
		if !f.Translate {
			out.Languages = languages(result)
		}
		if f.logprobs {
			out.Logprobs = Logprobs(result.Segments)
		}
		answer = out
	}
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err = enc.Encode(answer)
	return "application/json", buf.Bytes(), err
}

// wholeText returns the transcript without times.
func wholeText(result spec.Result) string {
	var b strings.Builder
	for _, seg := range result.Segments {
		b.WriteString(spec.Separated(b.String(), strings.TrimSpace(seg.Text)))
	}
	return b.String()
}

// usage reports the charged seconds of audio, as OpenAI does for whisper-1.
type usage struct {
	Type    string  `json:"type"`
	Seconds float64 `json:"seconds"`
}

func used(result spec.Result) usage { return usage{"duration", math.Ceil(result.Stats.DecodedSeconds)} }

// Logprob is the log probability (natural logarithm) of a token. The tokens are
// whole words, because the engine reports probabilities of words.
type Logprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// leastLogprob replaces the logarithm of 0; JSON has no infinity.
const leastLogprob = -9999

// Logprobs returns the log probabilities of the words of segments.
func Logprobs(segments []spec.Segment) []Logprob {
	out := []Logprob{}
	for _, seg := range segments {
		for _, word := range seg.Words {
			t := Logprob{Token: word.Word, Logprob: leastLogprob}
			if word.Probability > 0 {
				t.Logprob = math.Log(word.Probability)
			}
			for _, b := range []byte(word.Word) {
				t.Bytes = append(t.Bytes, int(b))
			}
			out = append(out, t)
		}
	}
	return out
}

type languageCode struct {
	Code string `json:"code"`
}

// languages returns the language of a result, none if it has no text.
func languages(result spec.Result) []languageCode {
	if result.Language == "" || len(result.Segments) == 0 {
		return []languageCode{}
	}
	return []languageCode{{result.Language}}
}

type plainJSON struct {
	Text      string         `json:"text"`
	Languages []languageCode `json:"languages,omitzero"`
	Logprobs  []Logprob      `json:"logprobs,omitzero"`
	Usage     usage          `json:"usage"`
}

// verboseSegment is a segment of verbose_json. Values that the recognizer did
// not measure are 0, because clients expect numbers rather than null.
type verboseSegment struct {
	ID           int     `json:"id"`
	Seek         int     `json:"seek"` // hundredths of a second, as in Whisper
	Start        float64 `json:"start"`
	End          float64 `json:"end"`
	Text         string  `json:"text"`
	Tokens       []int32 `json:"tokens"`
	Temperature  float64 `json:"temperature"`
	AvgLogProb   float64 `json:"avg_logprob"`
	Compression  float64 `json:"compression_ratio"`
	NoSpeechProb float64 `json:"no_speech_prob"`
}

func verboseSegmentOf(seg spec.Segment) verboseSegment {
	v := verboseSegment{ID: seg.ID, Start: seg.Start, End: seg.End, Text: seg.Text, Compression: textfile.CompressionRatio(seg.Text), Tokens: []int32{}}
	m := seg.Measures
	if m == nil {
		return v
	}
	v.Seek, v.AvgLogProb, v.Tokens = int(math.Round(m.Seek*100)), m.AvgLogProb, append(v.Tokens, m.Tokens...)
	v.Temperature, v.NoSpeechProb = *cmp.Or(m.Temperature, new(0.0)), *cmp.Or(m.NoSpeechProb, new(0.0))
	return v
}

type verboseWord struct {
	Word  string  `json:"word"`
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

type verboseJSON struct {
	Task     string           `json:"task"`
	Language string           `json:"language"`
	Duration float64          `json:"duration"`
	Model    string           `json:"model"` // an addition to OpenAI's interface
	Text     string           `json:"text"`
	Segments []verboseSegment `json:"segments,omitzero"`
	Words    []verboseWord    `json:"words,omitzero"`
	Usage    usage            `json:"usage"`
}

func verbose(form *Form, result spec.Result, text string) verboseJSON {
	v := verboseJSON{Task: "transcribe", Language: cmp.Or(spec.LanguageName(result.Language), result.Language), Duration: result.AudioDuration, Model: form.model.used(result), Text: text, Usage: used(result)}
	if form.Translate {
		v.Task, v.Language = "translate", "english"
	}
	if form.segments {
		v.Segments = []verboseSegment{}
	}
	if form.words {
		v.Words = []verboseWord{}
	}
	for _, seg := range result.Segments {
		if form.segments {
			v.Segments = append(v.Segments, verboseSegmentOf(seg))
		}
		if form.words {
			for _, word := range seg.Words {
				v.Words = append(v.Words, verboseWord{strings.TrimSpace(word.Word), word.Start, word.End})
			}
		}
	}
	return v
}

// diarizedSegment is a segment of diarized_json, and an event of a stream.
type diarizedSegment struct {
	Type    string  `json:"type"`
	ID      string  `json:"id"`
	Start   float64 `json:"start"`
	End     float64 `json:"end"`
	Text    string  `json:"text"`
	Speaker string  `json:"speaker"`
}

func diarizedSegmentOf(seg spec.Segment) diarizedSegment {
	return diarizedSegment{"transcript.text.segment", fmt.Sprintf("seg_%d", seg.ID), seg.Start, seg.End, seg.Text, seg.Speaker}
}

type diarizedJSON struct {
	Task     string            `json:"task"`
	Duration float64           `json:"duration"`
	Text     string            `json:"text"`
	Segments []diarizedSegment `json:"segments"`
	Usage    usage             `json:"usage"`
}

// Events of a streamed transcription.
type (
	textDelta struct {
		Type     string    `json:"type"`
		Delta    string    `json:"delta"`
		Logprobs []Logprob `json:"logprobs,omitzero"`
	}
	// textDone has no usage: OpenAI counts tokens there, which this service
	// does not count, and its clients refuse seconds.
	textDone struct {
		Type      string         `json:"type"`
		Text      string         `json:"text"`
		Languages []languageCode `json:"languages"`
		Logprobs  []Logprob      `json:"logprobs,omitzero"`
		Warnings  []spec.Warning `json:"warnings,omitempty"` // in a header of a response that is not streamed
	}
)

// Speech turns the sentences of a running task and its result into the events
// of a streamed transcription.
type Speech struct {
	form *Form
	text string // sent so far
}

// Speech returns the state of streaming the form's text, before any event.
func (f *Form) Speech() *Speech { return &Speech{form: f} }

// News returns the events of new sentences of a running task. They have no
// speaker, and may be divided between speakers later. If the words' probabilities
// are requested, sentences are only sent with the result.
func (s *Speech) News(segments []spec.Segment) []any {
	if s.form.logprobs {
		return nil
	}
	return s.sentences(segments)
}

func (s *Speech) sentences(segments []spec.Segment) (events []any) {
	for _, seg := range segments {
		delta := textDelta{Type: "transcript.text.delta", Delta: spec.Separated(s.text, strings.TrimSpace(seg.Text))}
		if delta.Delta == "" {
			continue
		}
		s.text += delta.Delta
		if s.form.logprobs {
			delta.Logprobs = Logprobs([]spec.Segment{seg})
		}
		events = append(events, delta)
	}
	return events
}

// End returns the events of the rest of the result, of all segments with their
// speakers if speakers are requested, and of the whole text, which counts if a
// failed attempt sent different sentences.
func (s *Speech) End(result spec.Result) (events []any) {
	whole := wholeText(result)
	if s.text != "" {
		if rest, ok := strings.CutPrefix(whole, s.text); ok && rest != "" {
			events = append(events, textDelta{Type: "transcript.text.delta", Delta: rest})
		}
	} else {
		events = s.sentences(result.Segments)
	}
	for _, seg := range result.Segments {
		if s.form.format == formatDiarized && strings.TrimSpace(seg.Text) != "" {
			events = append(events, diarizedSegmentOf(seg))
		}
	}
	done := textDone{Type: "transcript.text.done", Text: whole, Languages: languages(result), Warnings: result.Warnings}
	if s.form.logprobs {
		done.Logprobs = Logprobs(result.Segments)
	}
	return append(events, done)
}
