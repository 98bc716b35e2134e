package blob

import (
	"context"
	"io"
	"iter"
	"time"
)

// Bucket is what a Store keeps files in: a folder, S3, or a test's memory. A
// missing file is an error that wraps fs.ErrNotExist.
type Bucket interface {
	// Create starts a file that appears under key when it is committed. If
	// fresh is set and a file exists then, Commit returns fs.ErrExist.
	Create(ctx context.Context, key string, fresh bool) (Upload, error)
	// Open opens a file at an offset in bytes.
	Open(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
	// List returns the files whose keys begin with prefix, in the order of
	// keys. It ends after an error.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	Close() error
}

// Upload is an unfinished file of a Bucket. It is limited by the context of its
// creation, and ends with Commit, Abort, or both in this order if Commit fails.
type Upload interface {
	io.Writer
	Commit() error
	Abort(ctx context.Context)
}

// Object is one entry of a listing.
type Object struct {
	Key     string
	Size    int64
	ModTime time.Time
}
