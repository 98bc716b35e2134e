package spec

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrOptions marks every error about an Options object.
var ErrOptions = errors.New("invalid options")

// OptionError names an invalid option, the first of several, and the reason.
type OptionError struct {
	Field  string // JSON name of the option; empty if the object itself is malformed
	Reason string // the expected value and the actual one
}

// Error implements error.
func (e *OptionError) Error() string {
	if e.Field == "" {
		return "options: " + e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Is implements errors.Is for ErrOptions.
func (e *OptionError) Is(target error) bool { return target == ErrOptions }

// Permanent returns true: the same options fail again.
func (e *OptionError) Permanent() bool { return true }

// StageError names the stage of a run that failed. The accompanying Result
// holds the results of the other stages.
type StageError struct {
	Stage Stage
	Err   error
}

// Error implements error.
func (e *StageError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

func optionError(field, format string, args ...any) error {
	return &OptionError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// longestQuote limits the untrusted text that an error repeats, in characters.
const longestQuote = 60

// Shorten returns text for an error message: at most 60 characters and an
// ellipsis, valid UTF-8, without control characters.
func Shorten(s string) string {
	r := []rune(s)
	if len(r) > longestQuote {
		r = append(r[:longestQuote], '…')
	}
	for i, c := range r {
		if unicode.IsControl(c) {
			r[i] = unicode.ReplacementChar
		}
	}
	return string(r)
}

// Printable reports whether a text has at most so many characters, one of them
// one that can be seen, and no control characters.
func Printable(text string, most int) bool {
	seen := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
	return seen && utf8.RuneCountInString(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// permanent is an error that retrying doesn't fix.
type permanent struct{ err error }

func (p permanent) Error() string   { return p.err.Error() }
func (p permanent) Unwrap() error   { return p.err }
func (p permanent) Permanent() bool { return true }

// Permanent marks err as permanent, meaning that retrying doesn't fix it: bad
// input, a refused address, an account that can't pay. A nil err stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether err is permanent: it, or an error that it wraps,
// has a method Permanent() bool that is true, as Permanent's errors have.
func IsPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// ErrSlow marks audio that could not be decoded in the time for it. It is not
// permanent: the machine may be busy.
var ErrSlow = errors.New("decoding took too long")
