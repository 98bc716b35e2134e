// Package blob stores the service's files (audio, results, checkpoints) in a
// folder or in an S3-compatible store.
//
// A file appears under its key atomically when its Writer is committed, and is
// then durable: in a folder it is written under a temporary name, renamed, and
// synced together with its folder. Therefore a database row that is committed
// after Commit never refers to a missing file.
package blob

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
)

// Errors that callers act upon.
var (
	// ErrNotFound is returned if there is no file under the key.
	ErrNotFound = errors.New("file not found")
	// ErrFull is returned if the disk is full.
	ErrFull = errors.New("file store full")
	// ErrUnavailable is returned if the store can't be reached; retry later.
	ErrUnavailable = errors.New("file store unavailable")
)

// DataFolder is the name of the file store in a data folder and in a backup.
const DataFolder = "blobs"

// Store is an open file store. It is safe for concurrent use.
type Store struct {
	bucket   Bucket
	name     string
	endpoint string // of an S3 store, for error messages; "" means AWS
	fault    func(op, key string) error
	limits   limits
	observe  func(op string, took time.Duration, err error)
}

// Open opens the store at source: "file:///folder" or a plain path (the folder
// is created), or "s3://bucket/prefix?region=…&endpoint=…&use_path_style=true"
// with credentials from AWS's usual environment variables and files. It sends no
// request to an S3 server; see Check.
func Open(_ context.Context, source string) (*Store, error) {
	if strings.HasPrefix(source, "s3://") {
		bucket, endpoint, err := openS3(source)
		if err != nil {
			return nil, fmt.Errorf("file store %s: %w", source, err)
		}
		s := Over(bucket, bucket.String())
		s.endpoint = endpoint
		return s, nil
	}
	if strings.Contains(source, "://") && !strings.HasPrefix(source, "file://") {
		return nil, fmt.Errorf("file store %s: unknown scheme; want file:// or s3://", source)
	}
	dir, err := filepath.Abs(strings.TrimPrefix(source, "file://"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("file store %s: %w", source, classify(err))
	}
	return Over(folder(dir), dir), nil
}

// Over returns a store in a bucket that the caller has opened; several stores
// may share one. name describes it in errors.
func Over(bucket Bucket, name string) *Store {
	return &Store{
		bucket: bucket, name: name, limits: defaultLimits,
		fault: func(string, string) error { return nil }, observe: func(string, time.Duration, error) {},
	}
}

// Inject makes every operation ("create", "write", "commit", "open", "delete",
// "list") call fault first and return its error if it isn't nil. It is for
// tests and must be called before the store is used.
func (s *Store) Inject(fault func(op, key string) error) { s.fault = fault }

// Name describes the store: the folder's path or the bucket.
func (s *Store) Name() string { return s.name }

// Folder reports whether the files are in a folder: Local copies nothing.
func (s *Store) Folder() bool {
	_, is := s.bucket.(folder)
	return is
}

// Close closes the store.
func (s *Store) Close() error { return s.bucket.Close() }

var validKey = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9_.-]*(/[a-zA-Z0-9_-][a-zA-Z0-9_.-]*)*$`)

func (s *Store) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("file store %s: %s %s: %w", s.name, op, key, classify(err))
}

// Outage reports whether err is the store's temporary failure, or full disk.
func Outage(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) }

func classify(err error) error {
	kind := ErrUnavailable
	switch code := s3Code(err); {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrFull), errors.Is(err, ErrUnavailable),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = ErrFull
	case errors.Is(err, fs.ErrNotExist), code == minio.NoSuchKey:
		kind = ErrNotFound
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// Info describes a written file.
type Info struct {
	Key  string
	Size int64  // bytes
	MD5  string // 32 hexadecimal digits
}

// Writer writes one new file. Call exactly one of Commit and Abort; Abort after
// Commit does nothing, so that it can be deferred.
type Writer struct {
	store *Store
	key   string
	w     Upload
	guard guard
	sum   hash.Hash
	size  int64
	done  bool
	err   error
}

// Create starts a new file under key (lower-case path of letters, digits, "-",
// "_", "."). It is invisible before Commit.
func (s *Store) Create(ctx context.Context, key string) (*Writer, error) {
	return s.create(ctx, key, false)
}

// Put writes a file whole or not at all.
func (s *Store) Put(ctx context.Context, key string, from io.Reader) error {
	return s.put(ctx, key, from, false)
}

func (s *Store) put(ctx context.Context, key string, from io.Reader, fresh bool) error {
	w, err := s.create(ctx, key, fresh)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	_, err = w.Commit()
	return err
}

// create is Create; if fresh is set, Commit fails if the key exists.
func (s *Store) create(ctx context.Context, key string, fresh bool) (*Writer, error) {
	if !validKey.MatchString(key) {
		return nil, fmt.Errorf("file store %s: key %q is not valid", s.name, key)
	}
	g := newGuard(ctx)
	var w Upload
	err := s.timed(g, "create", key, s.limits.answer, func() (err error) {
		w, err = s.bucket.Create(g.ctx, key, fresh)
		return err
	})
	if err != nil {
		g.cancel(nil)
		return nil, err
	}
	return &Writer{store: s, key: key, w: w, guard: g, sum: md5.New()}, nil
}

// Write appends p.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.store.fault("write", w.key); err != nil {
		w.err = w.store.wrap("write", w.key, err)
		return 0, w.err
	}
	var n int
	err := w.guard.within(w.store.limits.transfer, func() (err error) {
		n, err = w.w.Write(p)
		return err
	})
	w.sum.Write(p[:n])
	w.size += int64(n)
	if err != nil {
		w.err = w.store.wrap("write", w.key, err)
	}
	return n, w.err
}

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Commit makes the file visible under its key once it is durable.
func (w *Writer) Commit() (Info, error) {
	if w.done {
		return Info{}, fmt.Errorf("file store %s: %s was ended before", w.store.name, w.key)
	}
	if w.err == nil {
		w.err = w.store.timed(w.guard, "commit", w.key, w.store.limits.transfer, w.w.Commit)
		w.done = w.err == nil
	}
	w.Abort()
	if w.err != nil {
		return Info{}, w.err
	}
	return Info{Key: w.key, Size: w.size, MD5: hex.EncodeToString(w.sum.Sum(nil))}, nil
}

// Abort discards the written data.
func (w *Writer) Abort() {
	w.guard.cancel(nil)
	if !w.done {
		w.done = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.guard.ctx), w.store.limits.answer)
		defer cancel()
		w.w.Abort(ctx)
	}
}

// Open opens the file under key for reading.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return s.OpenAt(ctx, key, 0)
}

// OpenAt opens the file under key for reading from an offset in bytes.
func (s *Store) OpenAt(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	g := newGuard(ctx)
	var r io.ReadCloser
	err := s.timed(g, "open", key, s.limits.answer, func() (err error) {
		r, err = s.bucket.Open(g.ctx, key, offset)
		return err
	})
	if err != nil {
		g.cancel(nil)
		return nil, err
	}
	return &reader{store: s, key: key, r: r, guard: g}, nil
}

// reader is an open file; each Read is limited by the store's timeout.
type reader struct {
	store *Store
	key   string
	r     io.ReadCloser
	guard guard
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (n int, err error) {
	err = r.guard.within(r.store.limits.transfer, func() (err error) {
		n, err = r.r.Read(p)
		return err
	})
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.store.wrap("read", r.key, err)
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.guard.cancel(nil)
	return r.r.Close()
}

// Local returns a path at which the file can be read: the file itself in a
// folder store, otherwise a copy in tempDir that release removes. release may be
// called again.
func (s *Store) Local(ctx context.Context, key, tempDir string) (path string, release func(), err error) {
	release = func() {}
	if dir, is := s.bucket.(folder); is {
		if err := s.fault("open", key); err != nil {
			return "", release, s.wrap("open", key, err)
		}
		path = dir.path(key)
		if _, err := os.Stat(path); err != nil {
			return "", release, s.wrap("open", key, err)
		}
		return path, release, nil
	}
	r, err := s.Open(ctx, key)
	if err != nil {
		return "", release, err
	}
	defer r.Close()
	c, path, err := newCopy(tempDir)
	if err != nil {
		return "", release, s.wrap("copy", key, err)
	}
	release = sync.OnceFunc(func() {
		c.Close()
		_ = os.Remove(path) // has no effect on a file without a name
	})
	if _, err = io.Copy(c, r); err != nil {
		release()
		return "", func() {}, s.wrap("copy", key, err)
	}
	return path, release, nil
}

// newCopy returns a new file in dir, and a path for this process to open it. On
// Linux the file has no name, so that it does not outlive the process.
func newCopy(dir string) (f *os.File, path string, err error) {
	if f, err = os.CreateTemp(dir, "otograph-copy-*"); err != nil {
		return nil, "", err
	}
	descriptor := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if _, err := os.Stat(descriptor); err == nil && os.Remove(f.Name()) == nil {
		return f, descriptor, nil
	}
	return f, f.Name(), nil
}

// Delete removes the file under key. Deleting a missing file is not an error.
func (s *Store) Delete(ctx context.Context, key string) error {
	g := newGuard(ctx)
	defer g.cancel(nil)
	err := s.timed(g, "delete", key, s.limits.answer, func() error { return s.bucket.Delete(g.ctx, key) })
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// List calls each for every file whose key begins with prefix, in the order of
// keys, until each returns an error. It includes unfinished temporary files of
// a folder store, which are garbage once they are old.
func (s *Store) List(ctx context.Context, prefix string, each func(Object) error) error {
	if err := s.fault("list", prefix); err != nil {
		return s.wrap("list", prefix, err)
	}
	g := newGuard(ctx)
	defer g.cancel(nil)
	next, stop := iter.Pull2(s.bucket.List(g.ctx, prefix))
	defer stop()
	for {
		var item Object
		more := false
		err := g.within(s.limits.answer, func() (err error) { // most calls are answered from the current page
			item, err, more = next()
			return err
		})
		if err != nil {
			return s.wrap("list", prefix, err)
		}
		if !more {
			return nil
		}
		if err := each(item); err != nil {
			return err
		}
	}
}

// DeletePrefix removes every file whose key begins with prefix.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) error {
	var keys []string
	err := s.List(ctx, prefix, func(o Object) error {
		keys = append(keys, o.Key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Bucket keeps the files of a Store: a folder, S3, or a test's memory. A
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
