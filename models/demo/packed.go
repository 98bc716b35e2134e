package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"unsafe"
	"weak"

	"github.com/klauspost/compress/zstd"

	"github.com/otograph/otograph/models"
)

// packed is one embedded model, compressed, with the size and hash of its
// content.
type packed struct {
	name   string
	data   *[]byte // zstd of the byte planes, or the model itself
	planes int     // stride of Split; 0 for a model that is not compressed
	size   int     // unpacked, bytes
	sha256 string  // of the unpacked bytes, hex

	mu      sync.Mutex
	last    weak.Pointer[byte] // the first byte of the slice returned last
	checked bool               // a model that is not compressed
}

// bytes unpacks the model. All users share the returned bytes, but packed does
// not keep them: an open engine has a copy of the weights, and the 32 MB of all
// models would make the garbage collector tolerate twice as much garbage.
func (p *packed) bytes() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked {
		return *p.data, nil
	}
	if first := p.last.Value(); first != nil {
		return unsafe.Slice(first, p.size), nil
	}
	data, err := p.unpack()
	if err != nil {
		return nil, err
	}
	if p.planes == 0 {
		p.checked = true
		return data, nil
	}
	p.last = weak.Make(unsafe.SliceData(data))
	return data, nil
}

// file returns the model's file; its Data unpacks on first use.
func (p *packed) file(part models.Part) models.File {
	return models.File{Part: part, Name: p.name, Size: int64(p.size), SHA256: p.sha256, Data: p.bytes}
}

// unpack decompresses the model if it is compressed, and checks size and hash;
// a mismatch (a damaged executable) is models.ErrBroken.
func (p *packed) unpack() ([]byte, error) {
	data := *p.data
	if p.planes > 0 {
		var err error
		if data, err = p.decompress(); err != nil {
			return nil, err
		}
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.sha256 {
		return nil, fmt.Errorf("%w: embedded %s: expected sha256 %s, found %x", models.ErrBroken, p.name, p.sha256, sum)
	}
	return data, nil
}

// decompress reverses the pack command.
func (p *packed) decompress() ([]byte, error) {
	// The frames were written through a pipe and declare the largest window of
	// zstd's highest level, so the memory limit is this large. DecodeAll works
	// in the given slice and allocates no window.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<27))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	defer dec.Close()
	planes, err := dec.DecodeAll(*p.data, make([]byte, 0, p.size))
	if err != nil {
		return nil, fmt.Errorf("%w: embedded %s: %w", models.ErrBroken, p.name, err)
	}
	if len(planes) != p.size {
		return nil, fmt.Errorf("%w: embedded %s: expected %d bytes, found %d", models.ErrBroken, p.name, p.size, len(planes))
	}
	return join(planes, p.planes), nil
}
