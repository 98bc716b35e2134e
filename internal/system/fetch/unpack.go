package fetch

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrArchive marks an archive that is damaged, too large or hostile.
var ErrArchive = errors.New("archive refused")

// ArchiveLimits limits an archive's content.
type ArchiveLimits struct {
	Files int   // in the archive, extracted or not
	Bytes int64 // unpacked, in all
}

// Allowed ratio of unpacked to packed size. Weights and sound hardly compress,
// annotations by about ten; the margin is for small archives.
const (
	maxRatio     = 50
	minAllowance = 64 << 20 // bytes
)

// Unpack extracts files of a .tar.bz2, .tar.gz or .tar into dir, which must
// exist. place returns the path below dir for a name in the archive, or "" to
// skip it. Links, devices and hidden files are always skipped, and no name can
// escape dir. Errors about the archive wrap ErrArchive.
func Unpack(ctx context.Context, archive, dir string, limits ArchiveLimits, place func(name string) string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	u, err := NewExtraction(f, dir, limits, place)
	if err != nil {
		return err
	}
	packed := bufio.NewReaderSize(f, 1<<20)
	head, err := packed.Peek(3)
	if err != nil {
		return u.Broken(fmt.Errorf("expected an archive, found %d bytes", len(head)))
	}
	return u.tar(ctx, packed, head)
}

// Extraction writes the files of one archive below a folder, within limits.
type Extraction struct {
	archive, dir string
	limits       ArchiveLimits
	place        func(name string) string
	left         int64 // bytes that may still be written
	count        int   // files seen
}

// NewExtraction returns the extraction of an archive; see [Unpack].
func NewExtraction(archive *os.File, dir string, limits ArchiveLimits, place func(name string) string) (*Extraction, error) {
	info, err := archive.Stat()
	if err != nil {
		return nil, err
	}
	limits.Bytes = min(limits.Bytes, minAllowance+maxRatio*info.Size())
	return &Extraction{archive: archive.Name(), dir: dir, limits: limits, left: limits.Bytes, place: place}, nil
}

func (u *Extraction) tar(ctx context.Context, packed *bufio.Reader, head []byte) error {
	r, err := decompress(packed, head)
	if err != nil {
		return u.Broken(err)
	}
	limited := &io.LimitedReader{R: r, N: u.limits.Bytes}
	t := tar.NewReader(limited)
	for {
		head, err := t.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		}
		if err == nil {
			open := func() (io.ReadCloser, error) { return io.NopCloser(t), nil }
			err = u.File(ctx, head.Name, head.Typeflag == tar.TypeReg, head.Size, open)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, ErrArchive) && limited.N > 0 || errors.As(err, new(*os.PathError)):
			return err
		case limited.N <= 0:
			return u.tooLarge()
		default:
			return u.Broken(err)
		}
	}
}

// File extracts one file of size bytes, if it is regular and place accepts it.
func (u *Extraction) File(ctx context.Context, name string, regular bool, size int64, open func() (io.ReadCloser, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u.count++; u.count > u.limits.Files {
		return u.Broken(fmt.Errorf("more than %d files", u.limits.Files))
	}
	if !regular {
		return nil
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
		return u.Broken(fmt.Errorf("the name %q points outside the archive", name))
	}
	if strings.HasPrefix(path.Base(name), ".") {
		return nil
	}
	to := u.place(name)
	if to == "" {
		return nil
	}
	// A sparse file expands to zeros beyond the archive's content, so the
	// output is limited besides the input.
	if u.left -= size; size < 0 || u.left < 0 {
		return u.tooLarge()
	}
	in, err := open()
	if err != nil {
		return u.Broken(err)
	}
	defer in.Close()
	switch err := write(ctx, in, filepath.Join(u.dir, filepath.FromSlash(to)), size); {
	case errors.Is(err, os.ErrExist):
		return u.Broken(fmt.Errorf("it holds %q twice", to))
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.As(err, new(*os.PathError)):
		return err
	default:
		return u.Broken(err)
	}
}

// write writes at most size bytes to a new file.
func write(ctx context.Context, in io.Reader, file string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	// O_EXCL refuses a name that occurs twice, which no publisher writes.
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(Interruptible(ctx, in), size+1))
	if err == nil && n > size {
		err = fmt.Errorf("%s: more than the stated %d bytes", filepath.Base(file), size)
	}
	return cmp.Or(err, out.Close())
}

// Broken returns an error about the archive, which wraps ErrArchive.
func (u *Extraction) Broken(err error) error {
	return fmt.Errorf("%w: %s: %w", ErrArchive, u.archive, err)
}

func (u *Extraction) tooLarge() error {
	return u.Broken(fmt.Errorf("it unpacks to more than %d bytes", u.limits.Bytes))
}

// decompress detects bzip2, gzip and plain tar by the first bytes.
func decompress(r *bufio.Reader, head []byte) (io.Reader, error) {
	switch {
	case string(head) == "BZh":
		return bzip2.NewReader(r), nil
	case head[0] == 0x1f && head[1] == 0x8b:
		return gzip.NewReader(r)
	}
	return r, nil
}

// Interruptible returns a reader that fails once its context is done.
func Interruptible(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
