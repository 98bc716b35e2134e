package library

import (
	"archive/tar"
	"bufio"
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

	"github.com/otograph/otograph/models"
)

// Limits on an archive. The largest published one unpacks to 1.3 GB in about a
// dozen files.
const (
	maxArchiveFiles = 10_000
	maxUnpacked     = 8 << 30 // bytes in all
	// Allowed ratio of unpacked to packed size. Weights hardly compress, so
	// published archives stay below 2; the margin is for small ones.
	maxRatio     = 50
	minAllowance = 64 << 20 // bytes
)

// unpack extracts the files of a .tar.bz2, .tar.gz or .tar for which want
// returns true (by base name) into dir, which must exist, without subfolders.
// It skips everything else in the archive: it never creates links or devices,
// and no name can escape dir. It returns the extracted names.
func unpack(ctx context.Context, archive, dir string, want func(name string) bool) ([]string, error) {
	info, err := os.Stat(archive)
	if err != nil {
		return nil, err
	}
	return unpackWithin(ctx, min(maxUnpacked, minAllowance+maxRatio*info.Size()), archive, dir, want)
}

// unpackWithin is unpack for an archive that may unpack to the allowed number
// of bytes.
func unpackWithin(ctx context.Context, allowed int64, archive, dir string, want func(name string) bool) ([]string, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := decompress(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", models.ErrBroken, archive, err)
	}
	limited := &io.LimitedReader{R: r, N: allowed}
	t := tar.NewReader(limited)
	var names []string
	left := allowed
	for count := 0; ; count++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		head, err := t.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return names, nil
		}
		if err != nil {
			return nil, broken(archive, limited, allowed, err)
		}
		if count >= maxArchiveFiles {
			return nil, fmt.Errorf("%w: %s: more than %d files", models.ErrBroken, archive, maxArchiveFiles)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		if !filepath.IsLocal(filepath.FromSlash(head.Name)) || strings.Contains(head.Name, `\`) {
			return nil, fmt.Errorf("%w: %s: the name %q points outside the archive", models.ErrBroken, archive, head.Name)
		}
		name := path.Base(head.Name)
		if strings.HasPrefix(name, ".") || !want(name) {
			continue
		}
		// A sparse file expands to zeros beyond the archive's content, so both
		// the output and the input are limited.
		if left -= head.Size; head.Size < 0 || left < 0 {
			return nil, tooLarge(archive, allowed)
		}
		// O_EXCL refuses a name that occurs twice, which no publisher writes.
		out, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("%w: %s: it holds %q twice", models.ErrBroken, archive, name)
		}
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(out, contextReader{ctx, t})
		if closed := out.Close(); err == nil {
			err = closed
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, broken(archive, limited, allowed, err)
		}
		names = append(names, name)
	}
}

func broken(archive string, limited *io.LimitedReader, allowed int64, err error) error {
	if limited.N <= 0 {
		return tooLarge(archive, allowed)
	}
	var disk *os.PathError
	if errors.As(err, &disk) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", models.ErrBroken, archive, err)
}

func tooLarge(archive string, allowed int64) error {
	return fmt.Errorf("%w: %s: it unpacks to more than %d bytes", models.ErrBroken, archive, allowed)
}

// decompress detects bzip2, gzip and plain tar by the first bytes.
func decompress(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(3)
	if err != nil {
		return nil, fmt.Errorf("expected an archive, found %d bytes", len(head))
	}
	switch {
	case string(head) == "BZh":
		return bzip2.NewReader(r), nil
	case head[0] == 0x1f && head[1] == 0x8b:
		return gzip.NewReader(r)
	}
	return r, nil
}

// isArchive reports whether a file name has an archive's extension.
func isArchive(name string) bool {
	name = strings.ToLower(name)
	for _, end := range []string{".tar.bz2", ".tbz2", ".tar.gz", ".tgz", ".tar"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// contextReader stops reading when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
