package library

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
)

// ErrOffline marks a download whose host could not be reached.
var ErrOffline = fetch.ErrOffline

// Download is a file to fetch: its Name, URL, Size in bytes and SHA256.
type Download = fetch.File

// Progress reports the progress of a download.
type Progress struct {
	// Model and File name the file being fetched.
	Model, File string
	// Done and Total count bytes; Total is 0 while unknown.
	Done, Total int64
	// Resumed is the number of bytes from an earlier attempt.
	Resumed int64
}

func (s *Store) fetcher() *fetch.Fetcher {
	return fetch.New(fetch.Fetcher{
		Client: s.Client, Mirror: s.Mirror, ByHand: "otograph models import FILE", Stall: s.stall, Pause: s.pause,
	})
}

// fetchModelFile downloads a model's file, with the errors of package models.
func fetchModelFile(ctx context.Context, f *fetch.Fetcher, d Download, part string) (string, error) {
	sum, err := f.Fetch(ctx, d, part)
	switch {
	case errors.Is(err, fetch.ErrBroken):
		err = fmt.Errorf("%w: %w", models.ErrBroken, err)
	case errors.Is(err, fetch.ErrMissing):
		err = fmt.Errorf("%w: %w", models.ErrMissing, err)
	}
	return sum, err
}

// Limits on an archive. The largest published one has 1.3 GB in a dozen files.
const (
	maxArchiveFiles = 10_000
	maxUnpacked     = 8 << 30 // bytes
)

// unpackModel extracts the files of an archive for which want returns true (by
// base name) into dir, without subfolders.
func unpackModel(ctx context.Context, archive, dir string, want func(name string) bool) error {
	err := fetch.Unpack(ctx, archive, dir, fetch.ArchiveLimits{Files: maxArchiveFiles, Bytes: maxUnpacked}, func(name string) string {
		if name = path.Base(name); want(name) {
			return name
		}
		return ""
	})
	if errors.Is(err, fetch.ErrArchive) {
		err = fmt.Errorf("%w: %w", models.ErrBroken, err)
	}
	return err
}
