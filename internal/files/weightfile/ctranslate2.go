package weightfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// WhisperSpec is the name of CTranslate2's specification of Whisper models.
const WhisperSpec = "WhisperSpec"

// Limits of CTranslate2's files. Whisper large-v3 has 1,100 variables.
const (
	oldest, newest = 2, 6    // binary versions
	maxName        = 1 << 10 // bytes
)

// CTranslate2Types are the types by CTranslate2's number (src/types.h).
var CTranslate2Types = []Type{F32, I8, I16, I32, F16, BF16}

// CTranslate2 describes a model.bin of CTranslate2.
type CTranslate2 struct {
	Version   uint32
	Spec      string // name of the specification
	Revision  uint32 // of the specification
	Variables map[string]Tensor
	// Aliases maps further names to the names of variables.
	Aliases map[string]string
}

// CTranslate2Spec returns the specification's name of a model.bin that begins
// with head, and false for a file in another format.
func CTranslate2Spec(head []byte) (string, bool) {
	if len(head) < 6 {
		return "", false
	}
	version, n := binary.LittleEndian.Uint32(head), int(binary.LittleEndian.Uint16(head[4:]))
	if version < oldest || version > newest || n < 2 || n > len(head)-6 || head[6+n-1] != 0 {
		return "", false
	}
	name := string(head[6 : 6+n-1])
	return name, !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
}

// ReadCTranslate2 reads CTranslate2's model.bin of size bytes, versions 2 to 6,
// without the variables' data. Errors wrap ErrInvalid unless reading failed.
//
// A file is little-endian. It begins with the version, the name of the model's
// specification and its revision. Then it has the number of variables and, for
// each, its name, rank, dimensions, type, size and data. From version 3 on, the
// number of aliases follows with, for each, its name and its variable's name.
func ReadCTranslate2(file io.ReaderAt, size int64) (*CTranslate2, error) {
	r := NewReader(file, size, readAhead)
	m := &CTranslate2{Version: r.Uint32(), Variables: map[string]Tensor{}, Aliases: map[string]string{}}
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

func (m *CTranslate2) variables(r *Reader) {
	n := r.Uint32()
	if n > maxTensors {
		r.fail("expected at most %d variables, found %d", maxTensors, n)
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

func (m *CTranslate2) aliases(r *Reader) {
	n := r.Uint32()
	if n > maxTensors {
		r.fail("expected at most %d aliases, found %d", maxTensors, n)
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
func (m *CTranslate2) Find(name string) (Tensor, bool) {
	if to, ok := m.Aliases[name]; ok {
		name = to
	}
	v, ok := m.Variables[name]
	return v, ok
}

// readAhead is the size of one read; a variable's data after it is skipped.
const readAhead = 512

func (r *Reader) fail(format string, args ...any) {
	r.Err = cmp.Or(r.Err, fmt.Errorf("at byte %d: %w", r.At, fmt.Errorf(format, args...)))
}

// text reads a string, whose length includes a final zero.
func (r *Reader) text() string {
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
func (r *Reader) variable(name string, version uint32) (v Tensor) {
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
		if n := int(r.Uint8()); n < len(CTranslate2Types) {
			v.Type = CTranslate2Types[n]
		} else {
			r.fail("variable %.100q: expected a type that CTranslate2 has, found type %d", name, n)
		}
		v.Size = int64(r.Uint32())
	} else {
		size := r.Uint8()
		var ok bool
		if v.Type, ok = map[uint8]Type{4: F32, 2: I16, 1: I8}[size]; !ok {
			r.fail("variable %.100q: expected numbers of 1, 2 or 4 bytes, found %d", name, size)
		}
		v.Size = int64(r.Uint32()) * int64(size)
	}
	if need := count * sizes[v.Type]; r.Err == nil && v.Size != need {
		r.fail("variable %.100q: expected %d bytes for %v numbers of %s, found %d", name, need, v.Shape, v.Type, v.Size)
	}
	v.At = r.At
	r.Skip(v.Size)
	return v
}
