package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
)

// unpack extracts the files of an archive that have a place into dir, as
// fetch.Unpack does, and also those of a .zip.
func unpack(ctx context.Context, archive, dir string, limits fetch.ArchiveLimits, place func(name string) string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	var mark [2]byte
	if _, err := io.ReadFull(f, mark[:]); err != nil || string(mark[:]) != "PK" {
		return fetch.Unpack(ctx, archive, dir, limits, place)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	refuse := func(err error) error { return fmt.Errorf("%w: %s: %w", fetch.ErrArchive, archive, err) }
	z, err := zip.NewReader(f, info.Size())
	switch {
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return refuse(err)
	case len(z.File) > limits.Files:
		return refuse(fmt.Errorf("more than %d files", limits.Files))
	}
	left := uint64(limits.Bytes) //nolint:gosec // limits are positive
	for _, file := range z.File {
		name := file.Name
		if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
			return refuse(fmt.Errorf("the name %q points outside the archive", name))
		}
		to := place(name)
		if to == "" || !file.Mode().IsRegular() || strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		if file.UncompressedSize64 > left {
			return refuse(fmt.Errorf("it unpacks to more than %d bytes", limits.Bytes))
		}
		left -= file.UncompressedSize64
		if err := unzip(ctx, file, filepath.Join(dir, filepath.FromSlash(to))); err != nil {
			if errors.As(err, new(*os.PathError)) && !errors.Is(err, os.ErrExist) || ctx.Err() != nil {
				return err
			}
			return refuse(err)
		}
	}
	return nil
}

// unzip writes one file of a .zip, which must not exist. The reader fails for
// content that is longer than stated.
func unzip(ctx context.Context, file *zip.File, to string) error {
	in, err := file.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("it holds %q twice: %w", filepath.Base(to), err)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, fetch.Interruptible(ctx, in))
	return errors.Join(err, out.Close())
}
