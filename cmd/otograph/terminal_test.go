package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile are untrusted texts and their cleaned forms.
var hostile = []struct{ name, text, clean, line string }{
	{"plain", "the receiver answered 500", "the receiver answered 500", "the receiver answered 500"},
	{"scripts", "naïve 中文 हिन्दी עברית 👩‍👩‍👧 é", "naïve 中文 हिन्दी עברית 👩‍👩‍👧 é", "naïve 中文 हिन्दी עברית 👩‍👩‍👧 é"},
	{"color", "\x1b[31mred\x1b[0m", "�[31mred�[0m", "�[31mred�[0m"},
	{"window title", "\x1b]0;owned\x07", "�]0;owned�", "�]0;owned�"},
	{"clipboard", "\x1b]52;c;ZWNobw==\x1b\\", "�]52;c;ZWNobw==�\\", "�]52;c;ZWNobw==�\\"},
	{"answers typed in", "\x1b[6n\x05", "�[6n�", "�[6n�"},
	{"eight-bit CSI", "\u009b2J\u0090q\u009c", "�2J�q�", "�2J�q�"},
	{"eight-bit CSI, no UTF-8", "\x9b2J", "�2J", "�2J"},
	{"rub out", "rm -rf\b\b\b\b\b\b\x7f", "rm -rf�������", "rm -rf�������"},
	{"over the line", "bad\rok ", "bad�ok ", "bad�ok "},
	{"more lines", "a\nb\tc\r\nd", "a\nb\tc�\nd", "a b c d"},
	{"separators", "a\u2028b\u2029c\u0085d", "a�b�c�d", "a�b�c�d"},
	{"override", "invoice\u202efdp.exe", "invoice�fdp.exe", "invoice�fdp.exe"},
	{"embedding", "\u202aa\u202bb\u202cc\u202dd", "�a�b�c�d", "�a�b�c�d"},
	{"isolates", "\u2066a\u2067b\u2068c\u2069", "�a�b�c�", "�a�b�c�"},
	{"hidden tags", "a\U000E0041\U000E007Fb", "a��b", "a��b"},
	{"annotation", "\ufff9a\ufffab\ufffb", "�a�b�", "�a�b�"},
	{"NUL", "a\x00b", "a�b", "a�b"},
	{"broken UTF-8", "a\xff\xc0b", "a��b", "a��b"},
}

func TestTerminalTextIsCleaned(t *testing.T) {
	for _, tt := range hostile {
		assert.Equal(t, tt.clean, cleanText(tt.text), tt.name)
		assert.Equal(t, tt.line, cleanLine(tt.text), tt.name)
	}
}

// TestCleanJSON checks that the output contains no character that a terminal obeys,
// and decodes to the input.
func TestCleanJSON(t *testing.T) {
	for _, tt := range hostile {
		var plain, shown bytes.Buffer
		require.NoError(t, json.NewEncoder(&plain).Encode(tt.text))
		encoder := json.NewEncoder(cleanJSON{&shown})
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(tt.text))
		var want, got string
		require.NoError(t, json.Unmarshal(plain.Bytes(), &want))
		require.NoError(t, json.Unmarshal(shown.Bytes(), &got), tt.name)
		assert.Equal(t, want, got, tt.name)
		assert.Equal(t, shown.String(), cleanText(shown.String()), tt.name)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(cleanJSON{&log}, nil)).Info("failed", "error", "\u009b2J\u202e", "cause", "\x1b[2J")
	assert.Contains(t, log.String(), `"error":"\u009b2J\u202e","cause":"\u001b[2J"`)
	_, err := cleanJSON{closedWriter{}}.Write([]byte("{}"))
	assert.Error(t, err)
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func FuzzClean(f *testing.F) {
	for _, tt := range hostile {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := cleanLine(text)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q", line)
		}
		if again := cleanLine(line); again != line {
			t.Errorf("%q became %q", line, again)
		}
		var shown bytes.Buffer
		if err := json.NewEncoder(cleanJSON{&shown}).Encode(text); err != nil {
			t.Fatal(err)
		}
		if shown.String() != cleanText(shown.String()) || !json.Valid(shown.Bytes()) {
			t.Errorf("%q", shown.String())
		}
	})
}

// TestLogOnATerminal: lines for people, without control characters of the
// logged texts.
func TestLogOnATerminal(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(terminalLog(&out, slog.LevelInfo))
	log.Debug("hidden")
	log.Info("task done", "file", "a b.wav", "seconds", 3)
	log.Warn("careful", "name", "\x1b[31mred")
	assert.Regexp(t, `^\d\d:\d\d:\d\d task done file="a b.wav" seconds=3\n\d\d:\d\d:\d\d WARN careful name="\\x1b\[31mred"\n$`, out.String())
	log.Info("a\x1b]0;title\x07b")
	assert.NotContains(t, out.String(), "\x1b")
}
