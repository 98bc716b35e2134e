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

// bar displays the progress of one run on a terminal: percentage, speed as a
// multiple of real time, remaining time, stage. On anything else it prints
// nothing.
type bar struct {
	out   io.Writer
	width func() int
	name  string
	start time.Time

	mu    sync.Mutex
	drawn time.Time
	shown bool
}

// The columns of a line: the words beside the bar have a fixed room, so that
// the bar's length stays constant.
const (
	barWords    = len("100 %  999.9 x real time  59m59s left  transcribe")
	barSigns    = len(" [] ")
	shortestBar = 10
	longestBar  = 30
)

// newBar returns a bar on w for the file called name, or a silent one if w is
// not a terminal or quiet is set.
func newBar(w *os.File, name string, quiet bool) *bar {
	b := &bar{name: name, start: time.Now()}
	if fd := int(w.Fd()); !quiet && drawable(w) {
		b.out = w
		b.width = func() int {
			if n, _, err := term.GetSize(fd); err == nil && n > 20 {
				return n
			}
			return 80
		}
	}
	return b
}

// update draws a report, at most ten times a second.
func (b *bar) update(p otograph.Progress) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.shown && !p.Done && now.Sub(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn, b.shown = now, true
	redraw(b.out, b.line(p, now.Sub(b.start)))
}

// line returns the text of the bar after the given time.
func (b *bar) line(p otograph.Progress, elapsed time.Duration) string {
	status := fmt.Sprintf("%3.0f %%", p.Fraction*100)
	if s := elapsed.Seconds(); p.Fraction > 0.02 && s > 0.5 && p.AudioDuration > 0 {
		left := time.Duration(s / p.Fraction * (1 - p.Fraction) * float64(time.Second))
		status += fmt.Sprintf("  %.1f × real time  %s left", p.AudioDuration*p.Fraction/s, left.Round(time.Second))
	}
	status += "  " + string(p.Stage)
	width := b.width() - 1
	room := width - barWords - barSigns
	name := []rune(b.name)
	if most := min(24, room-shortestBar); most < 1 {
		return clip(status, width)
	} else if len(name) > most {
		name = append([]rune("…"), name[len(name)-most+1:]...)
	}
	room = min(longestBar, room-len(name))
	full := int(p.Fraction*float64(room) + 0.5)
	return clip(fmt.Sprintf("%s [%s%s] %s", string(name), strings.Repeat("█", full), strings.Repeat("·", room-full), status), width)
}

// clip cuts a text to a width, and marks the cut.
func clip(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(0, width-1)]) + "…"
	}
	return s
}

// clear removes the bar, so that the next output begins on an empty line.
func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		redraw(b.out, "")
		b.shown = false
	}
}
