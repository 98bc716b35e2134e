package main

import (
	"encoding/json"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/live"
	"github.com/otograph/otograph/spec"
)

// show prints the events of a session until it ends. On a terminal, the last
// line has the text so far.
func (c *listenCmd) show(s *live.Session) error {
	if c.Format == "json" {
		enc := lineEncoder()
		for e, err := range s.Events() {
			if err != nil {
				return nil // Close returns it
			}
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
	style := textStyle{color: drawable(os.Stdout) && os.Getenv("NO_COLOR") == ""}
	moving := drawable(os.Stdout)
	for e, err := range s.Events() {
		if err != nil {
			return nil
		}
		if moving {
			redraw(os.Stdout, "")
		}
		switch e.Kind {
		case spec.LivePartial:
			if moving {
				redraw(os.Stdout, tail(clock(e.Start)+"  "+e.Text))
			}
		case spec.LiveFinal, spec.LiveSound:
			if err := writeText(os.Stdout, lineOf(e), style); err != nil {
				return err
			}
		case spec.LiveSpeakerChanged:
			if e.From != "" {
				c.note("%s – %s: %s is %s\n", clock(e.Start), clock(e.End), e.From, e.To)
			}
		case spec.LiveSpeechStarted, spec.LiveSpeechStopped, spec.LiveCommitted, spec.LiveCleared:
		}
	}
	return nil
}

// lineEncoder writes values as JSON to standard output, one a line.
func lineEncoder() *json.Encoder {
	enc := json.NewEncoder(cleanJSON{os.Stdout})
	enc.SetEscapeHTML(false)
	return enc
}

// lineOf returns the lines of an event as a result.
func lineOf(e live.Event) *otograph.Result {
	res := &otograph.Result{Segments: e.Segments, Ran: otograph.Capabilities{ASR: true}}
	for i := range res.Segments {
		seg := &res.Segments[i]
		res.Ran.Diarize = res.Ran.Diarize || seg.Speaker != ""
		if name := e.Names[seg.Speaker]; name != "" {
			seg.Speaker = name
		}
	}
	if e.Kind == spec.LiveSound {
		res.AudioEvents = []otograph.AudioEvent{{Start: e.Start, End: e.End, Class: e.Class, Confidence: e.Confidence}}
	}
	return res
}

// tail returns the end of a line that is too long for the terminal.
func tail(line string) string {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if n := utf8.RuneCountInString(line); err == nil && n >= width && width > 2 {
		return "…" + string([]rune(line)[n-width+2:])
	}
	return strings.TrimSpace(line)
}
