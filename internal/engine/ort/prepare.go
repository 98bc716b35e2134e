//go:build cgo

package ort

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// prepared returns a source as ONNX Runtime is to open it: a model in ONNX
// Runtime's own format translated into ONNX, rebuilt or with the outputs that
// opt.Expose adds. The result's bytes lie in the blocks.
func (b *blocks) prepared(src Source, opt Options) (Source, error) {
	r, size, closeFile, err := src.readable()
	if err != nil {
		return src, err
	}
	defer closeFile()
	var head [8]byte
	n, _ := r.ReadAt(head[:], 0) // Inspect reports a file that cannot be read
	own := onnxfile.IsORT(head[:n])
	if !own && opt.Expose == "" && opt.Rebuild == nil || size > onnxfile.MaxORTSize {
		return src, nil
	}
	data := src.Data
	if data == nil {
		data = b.get(int(size))
		if n, err := r.ReadAt(data, 0); n < len(data) {
			return src, fmt.Errorf("%s: %w", src, cmp.Or(err, io.ErrUnexpectedEOF))
		}
	}
	if own {
		if data, err = onnxfile.FromORT(data, b.get); err != nil {
			return src, fmt.Errorf("%s: %w", src, err)
		}
		b.freeBut(data)
		src.Data = data
	}
	if opt.Expose == "" && opt.Rebuild == nil {
		return src, nil
	}
	if h, err := onnxfile.Read(bytes.NewReader(data), int64(len(data))); err != nil || len(h.External) > 0 {
		return src, nil // Inspect reports the fault
	}
	var changed []byte
	if opt.Rebuild != nil {
		parts, err := onnxfile.ReadParts(data)
		if err != nil {
			return src, fmt.Errorf("%s: %w", src, err)
		}
		if g := opt.Rebuild(parts); g != nil {
			changed = g.BytesIn(b.get)
		}
	}
	if changed == nil && opt.Expose != "" {
		changed = onnxfile.Expose(data, opt.Expose, b.get)
	}
	if changed != nil {
		b.freeBut(changed)
		src.Data = changed
	}
	return src, nil
}
