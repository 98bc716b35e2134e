// Package jsonstream reads a JSON object from a stream, field by field and
// strictly. A long Base64 string is decoded while it arrives.
package jsonstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// Limits on the parts of a JSON body that are held in memory.
const (
	maxFieldName = 256      // bytes of a field's name
	maxDepth     = 32       // nesting of one value
	readBuffer   = 64 << 10 // bytes per read
)

// Fields maps an object's field names to the functions that read their values.
type Fields map[string]func(*Value) error

// object is an object being read: one value at a time, and at most max bytes.
type object struct {
	r      *bufio.Reader
	max    int // bytes of one captured value
	fields Fields
}

// Value is a field's value that has not been read yet. The function that
// receives it must call exactly one of its methods.
type Value struct {
	o    *object
	name string
	kind byte // first byte: " { [ t f n - or a digit
	read bool
}

// byteOrderMark may precede the object, which RFC 8259 (8.1) lets a parser
// ignore: Windows programs write it.
const byteOrderMark = "\uFEFF"

// ReadObject reads the single JSON object in r to its end: names in their exact
// case, each at most once, nothing after the object. max limits a single
// captured value, in bytes. It returns an *Error if the object is invalid, a
// *ReadError if r fails, and otherwise the error of a field's function.
func ReadObject(r io.Reader, max int, fields Fields) error {
	o := &object{r: bufio.NewReaderSize(r, readBuffer), max: max, fields: fields}
	if mark, _ := o.r.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = o.r.Discard(len(byteOrderMark))
	}
	first, err := o.next()
	switch {
	case errors.Is(err, io.EOF):
		return invalid("the body is empty: a JSON object is expected")
	case err != nil:
		return err
	case first != '{':
		return invalid("the body must be a JSON object")
	}
	if err := o.members(); err != nil {
		return err
	}
	return o.end(invalid("the body is not valid JSON: unexpected text after the object"))
}

// end refuses anything but white space after the value.
func (o *object) end(refusal *Error) error {
	_, err := o.next()
	switch {
	case err == nil:
		return refusal
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (o *object) members() error {
	seen := make(map[string]bool, len(o.fields))
	for {
		c, err := o.next()
		if err != nil || c == '}' {
			return err
		}
		if len(seen) > 0 {
			if c != ',' {
				return invalid("the body is not valid JSON: expected ',' or '}' after a value")
			}
			if c, err = o.next(); err != nil {
				return err
			}
		}
		if c != '"' {
			return invalid("the body is not valid JSON: expected a field name in double quotes")
		}
		name, err := o.fieldName()
		if err != nil {
			return err
		}
		take := o.fields[name]
		if take == nil {
			return invalid("%s: there is no such field%s", spec.Shorten(name), spec.DidYouMean(name, slices.Sorted(maps.Keys(o.fields))))
		}
		if seen[name] {
			return invalid("%s: is given twice", name)
		}
		seen[name] = true
		if c, err = o.next(); err != nil {
			return err
		}
		if c != ':' {
			return invalid("the body is not valid JSON: expected ':' after a field name")
		}
		if c, err = o.next(); err != nil {
			return err
		}
		_ = o.r.UnreadByte()
		v := &Value{o: o, name: name, kind: c}
		if err := take(v); err != nil {
			return err
		}
		if !v.read {
			return fmt.Errorf("field %s was not read by its handler", name)
		}
	}
}

// next returns the next byte that is not white space. It skips white space a
// buffer at a time, so that a body of white space is cheap.
func (o *object) next() (byte, error) {
	for {
		if _, err := o.r.Peek(1); err != nil {
			return 0, readError(err)
		}
		chunk, _ := o.r.Peek(o.r.Buffered())
		rest := bytes.TrimLeft(chunk, " \n\r\t")
		_, _ = o.r.Discard(len(chunk) - len(rest))
		if len(rest) > 0 {
			return o.r.ReadByte() // it is buffered
		}
	}
}

// fieldName reads a name whose opening quote has been read.
func (o *object) fieldName() (string, error) {
	raw := []byte{'"'}
	if err := o.stringRest(&raw, maxFieldName, invalid("a field name is longer than %d bytes", maxFieldName)); err != nil {
		return "", err
	}
	var name string
	if !utf8.Valid(raw) || json.Unmarshal(raw, &name) != nil {
		return "", invalid("the body is not valid JSON: a field name cannot be read")
	}
	return name, nil
}

// stringRest appends the rest of a string, including the closing quote. It
// returns tooLong if there are then more than max bytes.
func (o *object) stringRest(raw *[]byte, max int, tooLong error) error {
	for {
		c, err := o.r.ReadByte()
		if err != nil {
			return readError(err)
		}
		if *raw = append(*raw, c); len(*raw) > max {
			return tooLong
		}
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = o.r.ReadByte(); err != nil {
				return readError(err)
			}
			*raw = append(*raw, c)
		}
	}
}

// Raw returns the value as it is in the body: valid JSON, valid UTF-8, at most
// as long as ReadObject permits and at most 32 levels deep.
func (v *Value) Raw() (json.RawMessage, error) {
	v.read = true
	var raw []byte
	depth, tooLong := 0, invalid("%s: the value is longer than %d bytes", v.name, v.o.max)
	for {
		c, err := v.o.r.ReadByte()
		if err != nil {
			return nil, readError(err)
		}
		if depth == 0 && len(raw) > 0 && strings.IndexByte(",}] \n\r\t", c) >= 0 {
			_ = v.o.r.UnreadByte()
			break // the end of a number or literal
		}
		if raw = append(raw, c); len(raw) > v.o.max {
			return nil, tooLong
		}
		switch c {
		case '"':
			if err := v.o.stringRest(&raw, v.o.max, tooLong); err != nil {
				return nil, err
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, invalid("%s: nested more than %d levels deep", v.name, maxDepth)
			}
		case '}', ']':
			depth--
		}
		if depth <= 0 && (c == '"' || c == '}' || c == ']') {
			break
		}
	}
	if !utf8.Valid(raw) {
		return nil, invalid("%s: not valid UTF-8", v.name)
	}
	if !json.Valid(raw) {
		return nil, invalid("%s: not valid JSON", v.name)
	}
	return raw, nil
}

// Null reports whether the value is null, and then reads it.
func (v *Value) Null() (bool, error) {
	if v.kind != 'n' {
		return false, nil
	}
	_, err := v.Raw() // no other value begins with n
	return true, err
}

// Text reads a string of at most max characters without NUL.
func (v *Value) Text(dst *string, max int) error {
	raw, err := v.Raw()
	if err != nil {
		return err
	}
	if raw[0] != '"' {
		return invalid("%s: must be a string, not %s", v.name, spec.Shorten(string(raw)))
	}
	_ = json.Unmarshal(raw, dst) // it is valid
	return CheckText(v.name, *dst, max)
}

// CheckText returns an *Error naming the field if s is too long or has a NUL.
func CheckText(name, s string, max int) error {
	if n := utf8.RuneCountInString(s); n > max {
		return invalid("%s: has %d characters, at most %d are allowed", name, n, max)
	}
	if strings.ContainsRune(s, 0) {
		return invalid("%s: must not contain the character NUL", name)
	}
	return nil
}

// Bool reads true or false.
func (v *Value) Bool(dst *bool) error {
	raw, err := v.Raw()
	if err == nil && (v.kind == 'n' || json.Unmarshal(raw, dst) != nil) {
		err = invalid("%s: must be true or false, not %s", v.name, spec.Shorten(string(raw)))
	}
	return err
}

// Texts reads an array of at most maxItems strings; it stops at a longer one.
func (v *Value) Texts(dst *[]string, maxItems, maxLen int) error {
	raw, err := v.Raw()
	if err != nil {
		return err
	}
	if raw[0] != '[' {
		return invalid("%s: must be an array of strings, not %s", v.name, spec.Shorten(string(raw)))
	}
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil {
		return invalid("%s: must be an array of strings", v.name)
	}
	if len(list) > maxItems {
		return invalid("%s: has %d entries, at most %d are allowed", v.name, len(list), maxItems)
	}
	out := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return invalid("%s: entry %d must be a string, not null", v.name, i)
		}
		if err := CheckText(fmt.Sprintf("%s[%d]", v.name, i), *s, maxLen); err != nil {
			return err
		}
		out[i] = *s
	}
	*dst = out
	return nil
}

// Base64 returns the decoded bytes of a string as a stream. The caller must
// read it to io.EOF or stop reading the body.
func (v *Value) Base64() (io.Reader, error) {
	v.read = true
	if v.kind != '"' {
		raw, err := v.Raw()
		if err != nil {
			return nil, err
		}
		return nil, invalid("%s: must be a string of Base64, not %s", v.name, spec.Shorten(string(raw)))
	}
	if _, err := v.o.r.ReadByte(); err != nil {
		return nil, readError(err)
	}
	return Base64(&textReader{r: v.o.r}, v.name)
}

// Error describes a problem of an object by its field, safe for the client.
type Error struct {
	message string
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func invalid(format string, args ...any) *Error { return &Error{message: fmt.Sprintf(format, args...)} }

// ReadError reports that a stream failed before its end. Its text is safe for
// the client.
type ReadError struct {
	Message string
	Cause   error // io.EOF for a JSON text that is cut off
}

// Error implements error.
func (e *ReadError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Cause }

// readError returns an error of reading an object's stream.
func readError(err error) error {
	if errors.As(err, new(*ReadError)) {
		return err
	}
	return &ReadError{"the body ends in the middle of the JSON object", err}
}

// Reader returns a reader of r whose errors are *ReadErrors with a message.
func Reader(r io.Reader, message string) io.Reader { return reader{r, message} }

type reader struct {
	io.Reader
	message string
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &ReadError{r.message, err}
	}
	return n, err
}
