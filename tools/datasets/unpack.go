package main

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"

	"github.com/otograph/otograph/internal/system/fetch"
)

// unpack is fetch.Unpack that also extracts a .zip.
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
	x, err := fetch.NewExtraction(f, dir, limits, place)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return x.Broken(err)
	}
	for _, file := range z.File {
		open := func() (io.ReadCloser, error) { return file.Open() }
		if err := x.File(ctx, file.Name, file.Mode().IsRegular(), int64(file.UncompressedSize64), open); err != nil { //nolint:gosec // a negative size is refused
			return err
		}
	}
	return nil
}
