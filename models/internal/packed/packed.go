// Package packed unpacks the model files that are compiled into a program.
package packed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"
	"weak"

	"github.com/klauspost/compress/zstd"

	"github.com/otograph/otograph/models"
)

// File is an embedded file, for concurrent use; do not copy a used one.
type File struct {
	Part   models.Part `json:"part"`
	Name   string      `json:"name"`
	Planes int         `json:"planes"` // number of byte planes; 0 for a file that is not packed
	Size   int         `json:"size"`   // unpacked, bytes
	SHA256 string      `json:"sha256"` // of the unpacked bytes, lower-case hex
	Data   []byte      `json:"-"`      // zstd of the byte planes

	mu   sync.Mutex
	last weak.Pointer[byte] // the first byte of the slice returned last
}

// files holds the files in use by their names, so that all sets share one.
var files sync.Map

// Set returns a new set of models from its description: an object in JSON with
// the name and the models, each with the fields of models.Model, role and files.
// data holds the embedded bytes of the files by their names.
func Set(description []byte, data map[string][]byte) *models.Set {
	var list struct {
		Name   string
		Models []struct {
			models.Model
			Role  models.Role `json:"role"`
			Demo  bool        `json:"demo"`
			Files []*File     `json:"files"`
		}
	}
	if err := json.Unmarshal(description, &list); err != nil {
		panic(fmt.Sprintf("the description of embedded models: %v", err))
	}
	set := &models.Set{Name: list.Name}
	for _, m := range list.Models {
		m.Model.Role, m.Model.Demo = m.Role, m.Demo
		for _, f := range m.Files {
			f.Data = data[f.Name]
			shared, _ := files.LoadOrStore(f.Name, f)
			m.Model.Files = append(m.Model.Files, models.File{Part: f.Part, Name: f.Name, Size: int64(f.Size), SHA256: f.SHA256, Data: shared.(*File).Bytes})
		}
		set.Models = append(set.Models, m.Model)
	}
	return set
}

// Bytes unpacks the file. If size or hash differ, the executable is damaged,
// and the error is models.ErrBroken. All users share the returned bytes, but
// File does not keep them: an open engine has a copy of the weights, and 32 MB
// for all models would let twice as much garbage accumulate.
func (p *File) Bytes() ([]byte, error) {
	if p.Planes == 0 {
		return p.Data, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.last.Value(); first != nil {
		return unsafe.Slice(first, p.Size), nil
	}
	data, err := p.unpack()
	if err != nil {
		return nil, err
	}
	p.last = weak.Make(unsafe.SliceData(data))
	return data, nil
}

// large is the size in bytes from which the memory for unpacking is returned to
// the system immediately, because an engine is about to need as much.
const large = 16 << 20

// unpack reverses the pack command.
func (p *File) unpack() ([]byte, error) {
	planes, err := p.decompress()
	if err != nil {
		return nil, err
	}
	data := join(planes, p.Planes)
	if p.Size >= large {
		debug.FreeOSMemory()
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.SHA256 {
		return nil, fmt.Errorf("%w: damaged executable: embedded %s: expected sha256 %s, found %x", models.ErrBroken, p.Name, p.SHA256, sum)
	}
	return data, nil
}

// decompress returns the byte planes.
func (p *File) decompress() ([]byte, error) {
	// The frames were written through a pipe and declare the largest window of
	// zstd's highest level, so the memory limit is this large. DecodeAll works
	// in the given slice and allocates no window.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<27))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer dec.Close()
	planes, err := dec.DecodeAll(p.Data, make([]byte, 0, p.Size))
	if err != nil {
		return nil, fmt.Errorf("%w: damaged executable: embedded %s: %w", models.ErrBroken, p.Name, err)
	}
	if len(planes) != p.Size {
		return nil, fmt.Errorf("%w: damaged executable: embedded %s: expected %d bytes, found %d", models.ErrBroken, p.Name, p.Size, len(planes))
	}
	return planes, nil
}

// join restores the order of the data from byte planes, as HDF5's shuffle filter
// does: plane k holds every stride-th byte from k. Weights compress better that
// way, because their exponents become adjacent. A stride below 2 changes nothing.
// The race detector skips the function, whose slices are its caller's alone.
//
//go:norace
func join(planes []byte, stride int) []byte {
	if stride < 2 {
		return planes
	}
	out := make([]byte, len(planes))
	next := 0
	for plane := range stride {
		for i := plane; i < len(out); i, next = i+stride, next+1 {
			out[i] = planes[next]
		}
	}
	return out
}
