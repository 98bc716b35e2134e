package audio

import (
	"context"
	"io"
	"os"
	"syscall"

	"github.com/otograph/otograph/internal/files/mediafiles"
)

// Source is the origin of a recording: File, Reader or Raw.
type Source interface {
	// Name returns the name of the source for errors.
	Name() string
	source()
}

type fileSource struct{ path string }

type readerSource struct {
	r    io.Reader
	name string
}

type rawSource struct {
	samples        []float32
	rate, channels int
}

// File is a recording at a path: a regular file, not a named pipe, device or
// folder. Symbolic links are followed.
func File(path string) Source { return fileSource{path} }

// Reader is a recording that is read once, front to back. The name is used only
// in errors. WAV is decoded while it arrives; other formats are first copied to
// an unnamed temporary file. A canceled context ends a run whose Read hangs; the
// Read itself ends when the caller closes the other end of the reader.
func Reader(r io.Reader, name string) Source { return readerSource{r, name} }

// Raw is interleaved samples with any rate (Hz) and number of channels. The
// size limits do not apply to it.
func Raw(samples []float32, rate, channels int) Source { return rawSource{samples, rate, channels} }

func (s fileSource) Name() string   { return s.path }
func (s readerSource) Name() string { return s.name }
func (s rawSource) Name() string    { return "samples" }

func (fileSource) source()   {}
func (readerSource) source() {}
func (rawSource) source()    {}

// interruptible reads from r into a separate buffer, so that a Read that hangs
// can be left when ctx is done.
type interruptible struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (l *interruptible) Read(b []byte) (int, error) {
	if err := context.Cause(l.ctx); err != nil {
		return 0, err
	}
	if len(l.buf) < len(b) {
		l.buf = make([]byte, len(b))
	}
	buf := l.buf[:len(b)]
	type result struct {
		n     int
		err   error
		panic any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panic = recover() // for the caller
			done <- r
		}()
		r.n, r.err = l.r.Read(buf)
	}()
	select {
	case r := <-done:
		if r.panic != nil {
			panic(r.panic)
		}
		return copy(b, buf[:r.n]), r.err
	case <-l.ctx.Done():
		return 0, context.Cause(l.ctx)
	}
}

// open opens a regular file.
func (s fileSource) open(o Options) (*os.File, int64, error) {
	f, err := os.OpenFile(s.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe does not block
	if err != nil {
		return nil, 0, machineError(s.path, "open", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, machineError(s.path, "look at", err)
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, 0, fault(ErrUnsupported, s.path, "it is %s, expected a regular file", mediafiles.Kind(st.Mode()))
	}
	if err := o.checkSize(s.path, st.Size()); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}
