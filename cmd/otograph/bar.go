package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/otograph/otograph"
)

// statusLine is a terminal's line for progress; other writers get nothing.
type statusLine struct {
	out   io.Writer // nil if nothing is drawn
	width func() int

	mu    sync.Mutex
	drawn time.Time // zero while the line is empty
}

// newStatusLine returns w's status line, silent if quiet or not a terminal.
func newStatusLine(w *os.File, quiet bool) *statusLine {
	s := &statusLine{}
	if fd := int(w.Fd()); !quiet && drawable(w) {
		s.out = w
		s.width = func() int {
			if n, _, err := term.GetSize(fd); err == nil && n > 1 {
				return n - 1
			}
			return 79
		}
	}
	return s
}

// draw replaces the line; unless always is set, at most ten times a second.
func (s *statusLine) draw(always bool, text func(width int) string) {
	if s.out == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !always && now.Sub(s.drawn) < 100*time.Millisecond {
		return
	}
	s.drawn = now
	width := s.width()
	redraw(s.out, clip(text(width), width))
}

// clear empties the line for the next output.
func (s *statusLine) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drawn.IsZero() {
		redraw(s.out, "")
		s.drawn = time.Time{}
	}
}

// bar displays the progress of one run: percentage, speed as a multiple of real
// time, remaining time, stage.
type bar struct {
	*statusLine
	name  string
	start time.Time
}

// The columns of a line: the words beside the bar have a fixed room, so that
// the bar's length stays constant.
const (
	barWords    = len("100 %  999.9 x real time  59m59s left  transcribe")
	barSigns    = len(" [] ")
	shortestBar = 10
	longestBar  = 30
)

// newBar returns a bar on w for the file called name.
func newBar(w *os.File, name string, quiet bool) *bar {
	return &bar{newStatusLine(w, quiet), name, time.Now()}
}

func (b *bar) update(p otograph.Progress) {
	b.draw(p.Done, func(width int) string { return b.line(p, time.Since(b.start), width) })
}

// line returns the text of the bar after the given time.
func (b *bar) line(p otograph.Progress, elapsed time.Duration, width int) string {
	status := fmt.Sprintf("%3.0f %%", p.Fraction*100)
	if s := elapsed.Seconds(); p.Fraction > 0.02 && s > 0.5 && p.AudioDuration > 0 {
		left := time.Duration(s / p.Fraction * (1 - p.Fraction) * float64(time.Second))
		status += fmt.Sprintf("  %.1f × real time  %s left", p.AudioDuration*p.Fraction/s, left.Round(time.Second))
	}
	status += "  " + string(p.Stage)
	room := width - barWords - barSigns
	name := []rune(b.name)
	if most := min(24, room-shortestBar); most < 1 {
		return status
	} else if len(name) > most {
		name = append([]rune("…"), name[len(name)-most+1:]...)
	}
	room = min(longestBar, room-len(name))
	full := int(p.Fraction*float64(room) + 0.5)
	return fmt.Sprintf("%s [%s%s] %s", string(name), strings.Repeat("█", full), strings.Repeat("·", room-full), status)
}

// clip cuts a text to a width, and marks the cut.
func clip(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(0, width-1)]) + "…"
	}
	return s
}
