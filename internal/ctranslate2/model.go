// Package ctranslate2 reads the description of each variable in a model.bin of
// CTranslate2, binary versions 2 to 6: name, type, shape and offset.
//
// A file is little-endian. It begins with the version, the name of the model's
// specification and its revision. Then it has the number of variables and, for
// each, its name, rank, dimensions, type, size and data. From version 3 on, the
// number of aliases follows with, for each, its name and its variable's name.
package ctranslate2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

var typeNames = []string{"float32", "int8", "int16", "int32", "float16", "bfloat16"}

// String returns the type's name.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Size returns the number of bytes per number; 0 for an unknown type.
func (t Type) Size() int64 {
	switch t {
	case Float32, Int32:
		return 4
	case Int16, Float16, BFloat16:
		return 2
	case Int8:
		return 1
	}
	return 0
}

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
	r := &reader{r: file, size: size}
	m := &Model{Version: r.u32(), Variables: map[string]Variable{}, Aliases: map[string]string{}}
	if r.err == nil && (m.Version < oldest || m.Version > newest) {
		return nil, fmt.Errorf("%w: expected binary version %d to %d, found %d", ErrInvalid, oldest, newest, m.Version)
	}
	m.Spec = r.text()
	m.Revision = r.u32()
	m.variables(r)
	if m.Version >= 3 {
		m.aliases(r)
	}
	if r.err == nil && r.at != size {
		r.fail("expected the end of the file, found %d more bytes", size-r.at)
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (m *Model) variables(r *reader) {
	n := r.u32()
	if n > maxVariables {
		r.fail("expected at most %d variables, found %d", maxVariables, n)
	}
	for range n {
		name := r.text()
		v := r.variable(name, m.Version)
		if r.err != nil {
			return
		}
		if _, twice := m.Variables[name]; twice {
			r.fail("variable %.100q is there twice", name)
			return
		}
		m.Variables[name] = v
	}
}

func (m *Model) aliases(r *reader) {
	n := r.u32()
	if n > maxVariables {
		r.fail("expected at most %d aliases, found %d", maxVariables, n)
	}
	for range n {
		alias, name := r.text(), r.text()
		if r.err != nil {
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

// reader reads at a position and keeps the first error.
type reader struct {
	r     io.ReaderAt
	at    int64
	size  int64
	ahead []byte // the file's bytes from begin on
	begin int64
	err   error
}

// readAhead is the size of one read; a variable's data after it is skipped.
const readAhead = 512

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: at byte %d: %w", ErrInvalid, r.at, fmt.Errorf(format, args...))
	}
}

func (r *reader) skip(n int64) {
	if r.err == nil && n > r.size-r.at {
		r.fail("expected %d more bytes, found the end of the file at %d", n, r.size)
	}
	if r.err == nil {
		r.at += n
	}
}

// bytes returns the next n bytes, which are valid until the next call.
func (r *reader) bytes(n int64) []byte {
	at := r.at
	if r.skip(n); r.err != nil {
		return nil
	}
	if at < r.begin || r.at > r.begin+int64(len(r.ahead)) {
		want := min(max(n, readAhead), r.size-at)
		r.ahead, r.begin = make([]byte, want), at
		if got, err := r.r.ReadAt(r.ahead, at); err != nil && int64(got) < want {
			r.err = err
			return nil
		}
	}
	return r.ahead[at-r.begin:][:n]
}

func (r *reader) u8() uint8 {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// text reads a string, whose length includes a final zero.
func (r *reader) text() string {
	b := r.bytes(2)
	if b == nil {
		return ""
	}
	n := int64(binary.LittleEndian.Uint16(b))
	if n < 1 || n > maxName {
		r.fail("expected a name of 1 to %d bytes, found %d", maxName, n)
		return ""
	}
	name := r.bytes(n)
	if name == nil {
		return ""
	}
	if name[n-1] != 0 {
		r.fail("expected a name that ends with a zero")
		return ""
	}
	return string(name[:n-1])
}

// variable reads a variable after its name, and skips its data.
func (r *reader) variable(name string, version uint32) (v Variable) {
	rank := r.u8()
	if rank > maxRank {
		r.fail("variable %.100q: expected at most %d dimensions, found %d", name, maxRank, rank)
		return v
	}
	count := int64(1)
	for range rank {
		n := int64(r.u32())
		if n > 0 && count > r.size/n {
			r.fail("variable %.100q: %v numbers are more than the file has", name, append(v.Shape, n))
			return v
		}
		count *= n
		v.Shape = append(v.Shape, n)
	}
	if version >= 4 {
		v.Type = Type(r.u8())
		v.Size = int64(r.u32())
	} else {
		size := r.u8()
		var ok bool
		if v.Type, ok = map[uint8]Type{4: Float32, 2: Int16, 1: Int8}[size]; !ok {
			r.fail("variable %.100q: expected numbers of 1, 2 or 4 bytes, found %d", name, size)
		}
		v.Size = int64(r.u32()) * int64(size)
	}
	if r.err == nil && v.Type.Size() == 0 {
		r.fail("variable %.100q: expected a type that CTranslate2 has, found %s", name, v.Type)
	}
	if r.err == nil && v.Size != count*v.Type.Size() {
		r.fail("variable %.100q: expected %d bytes for %v numbers of %s, found %d", name, count*v.Type.Size(), v.Shape, v.Type, v.Size)
	}
	v.At = r.at
	r.skip(v.Size)
	return v
}
