package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// speaker is the name of the known speaker.
const speaker = "Ann"

var (
	srt = regexp.MustCompile(`^(?:\s*1\r?\n\d{2}:\d{2}:\d{2},\d{3} --> \d{2}:\d{2}:\d{2},\d{3}|\s*$)`)
	vtt = regexp.MustCompile(`^(?:\x{FEFF})?WEBVTT`)
)

// inFormat returns a judge of answers in a format.
func inFormat(format string) func(answer) (Verdict, string) {
	switch format {
	case "text":
		return func(a answer) (Verdict, string) {
			if json.Valid(a.body) && strings.HasPrefix(strings.TrimSpace(string(a.body)), "{") {
				return Ignored, "the answer is JSON"
			}
			return a.usable()
		}
	case "srt", "vtt":
		like := map[string]*regexp.Regexp{"srt": srt, "vtt": vtt}[format]
		return func(a answer) (Verdict, string) {
			switch {
			case json.Valid(a.body):
				return Ignored, "the answer is JSON"
			case !like.Match(a.body):
				return Wrong, "the answer begins " + clip(string(a.body[:min(len(a.body), 60)]))
			}
			return a.usable()
		}
	}
	return inJSON(format)
}

// usable judges an answer with valid content by its status.
func (a answer) usable() (Verdict, string) {
	if a.status != usable {
		return Wrong, fmt.Sprintf("the status is %d, expected %d", a.status, usable)
	}
	return Works, ""
}

// marks are the fields that distinguish an answer in a format from one in
// another.
var marks = map[string][]string{"verbose_json": {"duration", "language"}, "diarized_json": {"segments", "duration"}}

// inJSON returns a judge of answers by a schema of the description.
func inJSON(name string) func(answer) (Verdict, string) {
	return func(a answer) (Verdict, string) {
		var body any
		if err := json.Unmarshal(a.body, &body); err != nil {
			return Wrong, "no JSON: " + clip(string(a.body))
		}
		object, _ := body.(map[string]any)
		if fields := marks[name]; fields != nil && !slices.ContainsFunc(fields, func(f string) bool { return object[f] != nil }) {
			return Ignored, "the answer is in another format"
		}
		if err := conforms(name, body); err != nil {
			return Wrong, err.Error()
		}
		return a.usable()
	}
}

// shows returns a judge that checks the field that a parameter must set in an
// answer.
func shows(judge func(answer) (Verdict, string), field string, right func(any) bool) func(answer) (Verdict, string) {
	return func(a answer) (Verdict, string) {
		verdict, note := judge(a)
		if verdict != Works {
			return verdict, note
		}
		var body map[string]any
		_ = json.Unmarshal(a.body, &body) // judge has done it
		if !right(body[field]) {
			return Ignored, "the answer's " + field + " do not show it"
		}
		return verdict, note
	}
}

// entries reports whether a field is a list with entries.
func entries(field any) bool {
	list, _ := field.([]any)
	return len(list) > 0
}

// spoken reports whether a field names the given language.
func spoken(field any) bool { return field == "english" || field == "en" }

// namesSpeaker reports whether segments have the known speaker's name.
func namesSpeaker(field any) bool {
	list, _ := field.([]any)
	return slices.ContainsFunc(list, func(segment any) bool {
		fields, _ := segment.(map[string]any)
		return fields["speaker"] == speaker
	})
}

// inEvents returns a judge of streams, which must have an event of the wanted
// type ("" for any), and end with the whole text.
func inEvents(wanted string) func(answer) (Verdict, string) {
	return func(a answer) (Verdict, string) {
		if a.kind != "text/event-stream" {
			return Ignored, "the answer is not a stream of events but " + a.kind
		}
		seen := map[string]bool{}
		last := ""
		for line := range strings.Lines(string(a.body)) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
			if data = strings.TrimSpace(data); !ok || data == "[DONE]" {
				continue
			}
			var event map[string]any
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				return Wrong, "an event is no JSON: " + clip(data)
			}
			last, _ = event["type"].(string)
			if published().Schemas[last] == nil || !strings.HasPrefix(last, "transcript.") {
				return Wrong, "an event of an unknown type: " + clip(data)
			}
			if err := conforms(last, event); err != nil {
				return Wrong, err.Error()
			}
			seen[last] = true
		}
		switch {
		case last != "transcript.text.done":
			return Wrong, "the last event is " + clip(last) + ", expected transcript.text.done"
		case wanted != "" && !seen[wanted]:
			return Ignored, "no event is " + wanted
		}
		return a.usable()
	}
}
