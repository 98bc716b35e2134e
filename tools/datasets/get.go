package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
)

// Options configures Get.
type Options struct {
	// Dir is the data set's folder: new, empty, or begun by an earlier Get.
	Dir string
	// From lists files of the data set that were fetched by other means, or
	// folders with them. They are checked like downloads, and not changed.
	From []string
	// Mirror, if set, is a server's address with the files under HOST/PATH.
	Mirror string
	// Progress, if set, is called during downloads with the number of bytes; an
	// earlier call had downloaded the first resumed of them.
	Progress func(file string, done, total, resumed int64)

	fetcher *fetch.Fetcher
}

// Got describes a data set in its folder.
type Got struct {
	Manifest   string // path
	Recordings int
	// Skipped counts references without a recording, and the reverse.
	Skipped int
	// Unchecked names the files for which no hash is published.
	Unchecked []string
	// Already is set if the folder was complete.
	Already bool
}

// partials is the folder of unfinished work.
const partials = ".partial"

// Limits on an archive: VoxConverse has 5 GB, AMI some thousand files.
var limits = fetch.ArchiveLimits{Files: 100_000, Bytes: 64 << 30}

// Get downloads a data set into a folder with the recordings in audio, the
// references in references, their origin in dataset.json and, last of all,
// manifest.jsonl. A repeated Get keeps the files that are complete. Errors wrap
// ErrFolder, ErrContent, or errors of package fetch.
func (s Set) Get(ctx context.Context, o Options) (*Got, error) {
	files, err := localFiles(o.From)
	if err != nil {
		return nil, err
	}
	if o.fetcher == nil {
		how := fetch.Fetcher{Mirror: o.Mirror, ByHand: fmt.Sprintf("go run -C tools ./datasets -from FILE %s", s.Name)}
		if o.Progress != nil {
			how.Progress = func(p fetch.Progress) { o.Progress(p.File, p.Done, p.Total, p.Resumed) }
		}
		o.fetcher = fetch.New(how)
		defer o.fetcher.Client.CloseIdleConnections()
	}
	g := &retrieval{Set: s, Options: o, local: files}
	release, err := g.claim()
	if err != nil {
		return nil, err
	}
	got, err := g.complete(ctx)
	release() // before its file is removed, which Windows refuses otherwise
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return got, os.RemoveAll(filepath.Join(g.Dir, partials))
}

// retrieval downloads one data set into its folder.
type retrieval struct {
	Set
	Options
	local  map[string]string // paths of the files in From, by name
	origin origin
	// unchecked names the files without a published hash.
	unchecked []string
}

// origin is the content of dataset.json.
type origin struct {
	Name    string       `json:"name"`
	About   string       `json:"about"`
	License string       `json:"license"`
	Page    string       `json:"page"`
	Files   []fetch.File `json:"files,omitempty"` // with the hashes of the downloaded files
}

// localFiles returns the files of a list of files and folders, by name.
func localFiles(from []string) (map[string]string, error) {
	files := map[string]string{}
	for _, f := range from {
		info, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files[filepath.Base(f)] = f
			continue
		}
		entries, err := os.ReadDir(f)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(f, e.Name())
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // also a link to a file
				files[e.Name()] = path
			}
		}
	}
	return files, nil
}

// complete fetches the content and moves it to its place, unless it is there.
func (g *retrieval) complete(ctx context.Context) (*Got, error) {
	manifest := filepath.Join(g.Dir, manifestName)
	if exists(manifest) {
		return &Got{Manifest: manifest, Already: true}, nil
	}
	if err := g.writeOrigin(); err != nil {
		return nil, err
	}
	if err := g.content(ctx); err != nil {
		return nil, err
	}
	return g.finish()
}

func (g *retrieval) partial(name string) string { return filepath.Join(g.Dir, partials, name) }

// content fetches the files and collects their content in a work folder. All
// are fetched before one is unpacked.
func (g *retrieval) content(ctx context.Context) error {
	folder := g.partial("content")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o777)); err != nil {
		return err
	}
	paths := make([]string, len(g.files))
	for i, f := range g.files {
		var err error
		if paths[i], err = g.fetch(ctx, f); err != nil {
			return err
		}
	}
	for i, f := range g.files {
		if f.place != nil {
			if err := unpack(ctx, paths[i], folder, limits, f.place); err != nil {
				return err
			}
			continue
		}
		if err := link(ctx, paths[i], filepath.Join(folder, filepath.FromSlash(f.to)), g.local[f.Name] == ""); err != nil {
			return err
		}
	}
	return nil
}

// fetch returns the path of a checked file: a local, earlier or new one.
func (g *retrieval) fetch(ctx context.Context, f source) (string, error) {
	file, done := g.local[f.Name], g.partial(f.Name)
	if file == "" && len(g.From) == 1 && len(g.local) == 1 && len(g.files) == 1 && f.Name == g.files[0].Name {
		for _, file = range g.local { // the only file may have any name
			break
		}
	}
	want := f.File
	if err := g.point(ctx, f, file == "", &want); err != nil {
		return "", err
	}
	if file == "" && exists(done) {
		file = done
	}
	var sum string
	var err error
	if file != "" {
		sum, err = fetch.Check(want, file)
		if err != nil && file == done {
			file = "" // damaged since then
			err = os.Remove(done)
		}
		if err != nil {
			return "", err
		}
	}
	if file == "" {
		file = done
		part := fetch.PartFile(filepath.Join(g.Dir, partials), want)
		if sum, err = g.fetcher.Fetch(ctx, want, part); err != nil {
			return "", err
		}
		if err := os.Rename(part, done); err != nil {
			return "", err
		}
	}
	checked := want.SHA256 != ""
	want.SHA256 = sum
	g.origin.Files = append(g.origin.Files, want)
	if !checked {
		g.unchecked = append(g.unchecked, f.Name)
	}
	return file, nil
}

// point adds the size and hash that a pointer of Git LFS states. A local file
// stays unchecked without a connection, and any file if a mirror has no
// pointers.
func (g *retrieval) point(ctx context.Context, f source, needed bool, want *fetch.File) error {
	if f.pointer == "" {
		return nil
	}
	p := fetch.File{Name: f.Name + ".pointer", URL: f.pointer}
	part := fetch.PartFile(filepath.Join(g.Dir, partials), p)
	defer os.Remove(part)
	switch _, err := g.fetcher.Fetch(ctx, p, part); {
	case errors.Is(err, fetch.ErrMissing), err != nil && !needed && ctx.Err() == nil:
		return nil
	case err != nil:
		return err
	}
	in, err := os.Open(part)
	if err != nil {
		return err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, 1<<10))
	readPointer(data, want)
	return err
}

// readPointer reads a pointer of Git LFS into a file's size and hash. Other
// data changes neither.
func readPointer(data []byte, f *fetch.File) {
	var sum string
	var size int64
	rest, ok := strings.CutPrefix(string(data), "version https://git-lfs.github.com/spec/")
	for row := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSpace(row), " ")
		switch key {
		case "oid":
			sum = strings.TrimPrefix(value, "sha256:")
		case "size":
			size, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	if ok && len(sum) == 64 && size > 0 {
		f.SHA256, f.Size = sum, size
	}
}

// link makes the file to a hard link of from if from is ours, else a copy.
func link(ctx context.Context, from, to string, ours bool) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if ours && os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, fetch.Interruptible(ctx, in))
	return errors.Join(err, out.Close())
}

// finish writes the manifest and moves everything to its place.
func (g *retrieval) finish() (*Got, error) {
	folder := g.partial("content")
	lines, err := g.lines(folder)
	if err != nil {
		return nil, err
	}
	got := &Got{Manifest: filepath.Join(g.Dir, manifestName), Unchecked: g.unchecked}
	var manifest bytes.Buffer
	out := json.NewEncoder(&manifest)
	out.SetEscapeHTML(false)
	for _, l := range lines {
		if info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(l.File))); err != nil || !info.Mode().IsRegular() {
			got.Skipped++
			continue
		}
		l.Language, l.License = g.Language, g.License
		if err := out.Encode(l); err != nil {
			return nil, err
		}
		got.Recordings++
	}
	if got.Recordings == 0 {
		return nil, fmt.Errorf("%w: expected recordings with references, found %d references without a recording", ErrContent, len(lines))
	}
	recordings, err := os.ReadDir(filepath.Join(folder, audioDir))
	if err != nil {
		return nil, err
	}
	got.Skipped += len(recordings) - got.Recordings
	for _, name := range []string{audioDir, referencesDir} {
		if err := os.RemoveAll(filepath.Join(g.Dir, name)); err != nil { // of an earlier Get that was killed here
			return nil, err
		}
		if err := os.Rename(filepath.Join(folder, name), filepath.Join(g.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := g.writeOrigin(); err != nil {
		return nil, err
	}
	return got, replace(got.Manifest, manifest.Bytes())
}

// replace writes a file under another name first: it is never half written.
func replace(file string, data []byte) error {
	part := filepath.Join(filepath.Dir(file), partials, path.Base(file))
	if err := os.WriteFile(part, data, 0o666); err != nil {
		return err
	}
	return os.Rename(part, file)
}
