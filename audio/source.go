package audio

import (
	"errors"
	"io"
	"os"
)

// Source is where a recording comes from: File, Reader or Raw.
type Source interface {
	// Name is what errors call the source.
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

// File is a recording at a path. Only regular files are opened: no named pipes, no devices, no folders,
// and no symbolic links unless Options.FollowLinks is set.
func File(path string) Source { return fileSource{path} }

// Reader is a recording that is read once, front to back. The name is used in errors and for nothing else.
// WAV is decoded while it arrives; other formats go to an unnamed temporary file first. A Read that blocks is not interrupted
// by a cancelled context; the caller closes the reader's other end for that.
func Reader(r io.Reader, name string) Source { return readerSource{r, name} }

// Raw is interleaved samples at any rate (Hz) and number of channels. The size limits do not apply to it.
func Raw(samples []float32, rate, channels int) Source { return rawSource{samples, rate, channels} }

func (s fileSource) Name() string   { return s.path }
func (s readerSource) Name() string { return s.name }
func (s rawSource) Name() string    { return "samples" }

func (fileSource) source()   {}
func (readerSource) source() {}
func (rawSource) source()    {}

// errLink says that a file is a symbolic link, which is not to be followed.
var errLink = errors.New("symbolic link")

// open opens a regular file.
func (s fileSource) open(o Options) (*os.File, int64, error) {
	f, err := openAny(s.path, o.FollowLinks)
	if errors.Is(err, errLink) {
		return nil, 0, fault(ErrUnsupported, s.path, "it is a symbolic link, expected a regular file")
	}
	if err != nil {
		return nil, 0, trouble(s.path, "open", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, trouble(s.path, "look at", err)
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, 0, fault(ErrUnsupported, s.path, "it is %s, expected a regular file", kindOf(st.Mode()))
	}
	if err := o.checkSize(s.path, st.Size()); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}
