package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folder is a Bucket in a folder; unfinished files end in ".<number>.tmp".
type folder string

func (d folder) path(key string) string { return filepath.Join(string(d), filepath.FromSlash(key)) }

// Create implements Bucket.
func (d folder) Create(ctx context.Context, key string, fresh bool) (Upload, error) {
	path := d.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, err
	}
	return &fileUpload{File: f, ctx: ctx, folder: d, path: path, fresh: fresh}, nil
}

// fileUpload is an unfinished file of a folder.
type fileUpload struct {
	*os.File
	ctx    context.Context
	folder folder
	path   string // of the finished file
	fresh  bool
}

// Commit implements Upload.
func (u *fileUpload) Commit() error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if err := errors.Join(u.Sync(), u.Close()); err != nil {
		return err
	}
	if err := u.publish(); err != nil {
		return err
	}
	return u.folder.sync(filepath.Dir(u.path))
}

// publish renames the file to its final name.
func (u *fileUpload) publish() error {
	if u.fresh {
		err := os.Link(u.Name(), u.path)
		if err == nil {
			return os.Remove(u.Name())
		}
		if _, missing := os.Lstat(u.path); missing == nil {
			return fs.ErrExist
		} // else the file system has no hard links
	}
	return os.Rename(u.Name(), u.path)
}

// Abort implements Upload.
func (u *fileUpload) Abort(context.Context) {
	u.Close()
	_ = os.Remove(u.Name())
}

// sync syncs the folder at path, and its parents in the store, to disk.
func (d folder) sync(path string) error {
	for ; ; path = filepath.Dir(path) {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = f.Sync()
		f.Close()
		if err != nil || path == string(d) {
			return err
		}
	}
}

// Open implements Bucket.
func (d folder) Open(_ context.Context, key string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Delete implements Bucket.
func (d folder) Delete(_ context.Context, key string) error { return os.Remove(d.path(key)) }

// Close implements Bucket.
func (d folder) Close() error { return nil }

// List implements Bucket.
func (d folder) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := d.walk(ctx, "", prefix, func(o Object) error {
			if !yield(o, nil) {
				return fs.SkipAll
			}
			return nil
		}); err != nil && !errors.Is(err, fs.SkipAll) {
			yield(Object{}, err)
		}
	}
}

// walk calls each for every file below the key parent, which is "" or ends with
// "/", whose key begins with prefix, in the order of keys.
func (d folder) walk(ctx context.Context, parent, prefix string, each func(Object) error) error {
	entries, err := os.ReadDir(d.path(parent))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return parent + e.Name() + "/"
		}
		return parent + e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	for _, e := range entries {
		k := key(e)
		switch {
		case e.IsDir() && (strings.HasPrefix(k, prefix) || strings.HasPrefix(prefix, k)):
			err = d.walk(ctx, k, prefix, each)
		case !e.IsDir() && strings.HasPrefix(k, prefix):
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				err = each(Object{Key: k, Size: info.Size(), ModTime: info.ModTime()})
			}
		default:
			continue
		}
		if errors.Is(err, fs.ErrNotExist) { // deleted since
			continue
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
