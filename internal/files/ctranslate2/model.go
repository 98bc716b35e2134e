// Package ctranslate2 reads the description of each variable in a model.bin of
// CTranslate2, binary versions 2 to 6: name, type, shape and offset.
//
// A file is little-endian. It begins with the version, the name of the model's
// specification and its revision. Then it has the number of variables and, for
// each, its name, rank, dimensions, type, size and data. From version 3 on, the
// number of aliases follows with, for each, its name and its variable's name.
package ctranslate2

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/otograph/otograph/internal/files/binfile"
)

// ErrInvalid marks data that is not a valid model.bin.
var ErrInvalid = errors.New("not a usable CTranslate2 model")

// Whisper is the name of the specification of Whisper models.
const Whisper = "WhisperSpec"

// Limits. Whisper large-v3 has 1,100 variables.
const (
	oldest, newest = 2, 6 // binary versions
	maxVariables   = 1 << 16
	maxName        = 1 << 10 // bytes
	maxRank        = 8
)

// Type is CTranslate2's number of a type.
type Type uint8

// The types, as src/types.h of CTranslate2 numbers them.
const (
	Float32 Type = iota
	Int8
	Int16
	Int32
	Float16
	BFloat16
)

var types = map[Type]struct {
	name string
	size int64
}{
	Float32: {"float32", 4}, Int8: {"int8", 1}, Int16: {"int16", 2},
	Int32: {"int32", 4}, Float16: {"float16", 2}, BFloat16: {"bfloat16", 2},
}

// String returns the type's name.
func (t Type) String() string { return cmp.Or(types[t].name, fmt.Sprintf("type %d", uint8(t))) }

// Size returns the number of bytes per number; 0 for an unknown type.
func (t Type) Size() int64 { return types[t].size }

// Variable is one variable of a model.
type Variable struct {
	Type  Type
	Shape []int64 // the outermost dimension first; empty for a single number
	// At and Size are the range of the data in the file, in bytes.
	At, Size int64
}

// Model describes a file.
type Model struct {
	Version   uint32
	Spec      string // name of the specification
	Revision  uint32 // of the specification
	Variables map[string]Variable
	// Aliases maps further names to the names of variables.
	Aliases map[string]string
}

// Spec returns the specification's name of a file that begins with head, and
// false for a file in another format.
func Spec(head []byte) (string, bool) {
	if len(head) < 6 {
		return "", false
	}
	version, n := binary.LittleEndian.Uint32(head), int(binary.LittleEndian.Uint16(head[4:]))
	if version < oldest || version > newest || n < 2 || n > len(head)-6 || head[6+n-1] != 0 {
		return "", false
	}
	name := string(head[6 : 6+n-1])
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' {
			return "", false
		}
	}
	return name, true
}

// Read reads a file of size bytes without the variables' data. Errors wrap
// ErrInvalid unless reading failed.
func Read(file io.ReaderAt, size int64) (*Model, error) {
	r := reader{binfile.New(file, size, readAhead)}
	m := &Model{Version: r.Uint32(), Variables: map[string]Variable{}, Aliases: map[string]string{}}
	if r.Err == nil && (m.Version < oldest || m.Version > newest) {
		return nil, fmt.Errorf("%w: expected binary version %d to %d, found %d", ErrInvalid, oldest, newest, m.Version)
	}
	m.Spec = r.text()
	m.Revision = r.Uint32()
	m.variables(r)
	if m.Version >= 3 {
		m.aliases(r)
	}
	if r.Err == nil && r.At != size {
		r.fail("expected the end of the file, found %d more bytes", size-r.At)
	}
	switch {
	case r.Unread:
		return nil, r.Err
	case r.Err != nil:
		return nil, fmt.Errorf("%w: %w", ErrInvalid, r.Err)
	}
	return m, nil
}

func (m *Model) variables(r reader) {
	n := r.Uint32()
	if n > maxVariables {
		r.fail("expected at most %d variables, found %d", maxVariables, n)
	}
	for range n {
		name := r.text()
		v := r.variable(name, m.Version)
		if r.Err != nil {
			return
		}
		if _, twice := m.Variables[name]; twice {
			r.fail("variable %.100q is there twice", name)
			return
		}
		m.Variables[name] = v
	}
}

func (m *Model) aliases(r reader) {
	n := r.Uint32()
	if n > maxVariables {
		r.fail("expected at most %d aliases, found %d", maxVariables, n)
	}
	for range n {
		alias, name := r.text(), r.text()
		if r.Err != nil {
			return
		}
		if _, ok := m.Variables[name]; !ok {
			r.fail("alias %.100q stands for %.100q, which is no variable", alias, name)
			return
		}
		m.Aliases[alias] = name
	}
}

// Find returns a variable by its name or an alias.
func (m *Model) Find(name string) (Variable, bool) {
	if to, ok := m.Aliases[name]; ok {
		name = to
	}
	v, ok := m.Variables[name]
	return v, ok
}

// readAhead is the size of one read; a variable's data after it is skipped.
const readAhead = 512

// reader reads the parts of a file.
type reader struct{ *binfile.Reader }

func (r reader) fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("at byte %d: %w", r.At, fmt.Errorf(format, args...))
	}
}

// text reads a string, whose length includes a final zero.
func (r reader) text() string {
	n := int64(r.Uint16())
	if n < 1 || n > maxName {
		r.fail("expected a name of 1 to %d bytes, found %d", maxName, n)
	}
	name, ended := strings.CutSuffix(string(r.Bytes(n)), "\x00")
	if !ended {
		r.fail("expected a name that ends with a zero")
	}
	return name
}

// variable reads a variable after its name, and skips its data.
func (r reader) variable(name string, version uint32) (v Variable) {
	rank := r.Uint8()
	if rank > maxRank {
		r.fail("variable %.100q: expected at most %d dimensions, found %d", name, maxRank, rank)
		return v
	}
	count := int64(1)
	for range rank {
		n := int64(r.Uint32())
		if n > 0 && count > r.Size/n {
			r.fail("variable %.100q: %v numbers are more than the file has", name, append(v.Shape, n))
			return v
		}
		count *= n
		v.Shape = append(v.Shape, n)
	}
	if version >= 4 {
		v.Type = Type(r.Uint8())
		v.Size = int64(r.Uint32())
	} else {
		size := r.Uint8()
		var ok bool
		if v.Type, ok = map[uint8]Type{4: Float32, 2: Int16, 1: Int8}[size]; !ok {
			r.fail("variable %.100q: expected numbers of 1, 2 or 4 bytes, found %d", name, size)
		}
		v.Size = int64(r.Uint32()) * int64(size)
	}
	if r.Err == nil && v.Type.Size() == 0 {
		r.fail("variable %.100q: expected a type that CTranslate2 has, found %s", name, v.Type)
	}
	if r.Err == nil && v.Size != count*v.Type.Size() {
		r.fail("variable %.100q: expected %d bytes for %v numbers of %s, found %d", name, count*v.Type.Size(), v.Shape, v.Type, v.Size)
	}
	v.At = r.At
	r.Skip(v.Size)
	return v
}
