package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// cleanText makes untrusted text safe to show to an operator: texts of
// receivers, model files, customers and servers may contain control characters
// that move the cursor, retitle or clear a terminal, and marks that disguise
// text. It replaces every character that a terminal would obey instead of
// displaying it by U+FFFD. Line breaks and tabs are kept.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// newLog returns a logger to standard error: JSON, or text on a terminal.
func newLog(level slog.Level) *slog.Logger {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return slog.New(terminalLog(os.Stderr, level))
	}
	return slog.New(slog.NewJSONHandler(cleanJSON{os.Stderr}, &slog.HandlerOptions{Level: level}))
}

// terminalLog returns a handler that writes lines for people: the time of day,
// the level unless it is INFO, the message and its attributes.
func terminalLog(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(cleanLines{w}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) > 0:
		case a.Key == slog.TimeKey:
			return slog.String(slog.TimeKey, a.Value.Time().Format(time.TimeOnly))
		case a.Key == slog.LevelKey && a.Value.String() == slog.LevelInfo.String():
			return slog.Attr{}
		}
		return a
	}})
}

// cleanLines passes lines on without their keys for time, level and message,
// and without characters that a terminal obeys.
type cleanLines struct{ w io.Writer }

func (l cleanLines) Write(p []byte) (int, error) {
	head, rest, _ := strings.Cut(string(p), "msg=")
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		message, _ := strconv.Unquote(quoted) // QuotedPrefix has checked it
		rest = message + rest[len(quoted):]
	}
	head = strings.NewReplacer("time=", "", "level=", "").Replace(head)
	if _, err := io.WriteString(l.w, cleanText(head+rest)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cleanLine is cleanText for text that must stay on its line and in its column:
// line breaks and tabs become spaces.
func cleanLine(text string) string {
	return cleanText(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}

// cleanJSON is a writer that passes JSON on. It writes the characters that
// cleanText replaces as \uXXXX, so that no value changes. Each Write must
// consist of whole characters, as with encoding/json and log/slog.
type cleanJSON struct{ io.Writer }

func (j cleanJSON) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r < 0x7f || !obeyed(r): // JSON has no other control characters inside strings
			out = append(out, rest[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	if _, err := j.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// obeyed reports whether a terminal does something other than show r. That
// includes control characters, even the eight-bit ones; line separators; and
// marks that reorder, annotate or hide text. It excludes marks that scripts
// need (joiners, left-to-right and right-to-left marks).
func obeyed(r rune) bool {
	return unicode.IsControl(r) ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || // embeddings, overrides, isolates
		r == '\u2028' || r == '\u2029' || // line and paragraph separators
		r >= '\ufff9' && r <= '\ufffb' || r >= 0xe0000 && r <= 0xe007f // annotations, tags
}
