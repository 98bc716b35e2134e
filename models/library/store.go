package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models"
)

// envDir is the environment variable that names the model folder.
const envDir = "OTOGRAPH_MODELS"

// DefaultDir returns the default model folder: the value of OTOGRAPH_MODELS (named is
// then true, and the folder is expected to exist), or else otograph/models in
// the user's data folder ($XDG_DATA_HOME, or ~/.local/share).
func DefaultDir() (dir string, named bool, err error) {
	if dir := os.Getenv(envDir); dir != "" {
		return dir, true, nil
	}
	if dir, err = host.DataDir("models"); err != nil {
		return "", false, fmt.Errorf("model folder: %w; set %s", err, envDir)
	}
	return dir, false, nil
}

// Store is a model folder to which models are added: each in a separate
// subfolder, and the models used by the roles in otograph.json.
type Store struct {
	// Dir is the folder; it is created when needed.
	Dir string
	// Client makes the requests; nil means a client that honors the proxy
	// variables of the environment.
	Client *http.Client
	// Mirror is the address to fetch from instead of the publishers' hosts:
	// MIRROR/HOST/PATH, or one with {path} (and {host}). Empty for none.
	Mirror string
	// Progress, if not nil, is called for each piece, from the calling goroutine.
	Progress func(Progress)
	// Waiting, if not nil, is called once if another process uses the folder.
	Waiting func()

	// Timeouts of the fetcher, shortened by tests; 0 means the default.
	stall, pause time.Duration
}

// Stored is a model that a Store added to its folder.
type Stored struct {
	Role models.Role
	Name string
	// Dir is the model's folder.
	Dir string
	// Files are the model's files, with their paths and hashes.
	Files []models.File
	// Trusted names the files without a published hash: the download's hash is
	// recorded, and checked from then on. The user should be informed.
	Trusted []string
	// Notes holds findings about a converted model to show to the user.
	Notes []string
	// Already is set if the files were present and only had to be selected.
	Already bool
	// Convert names the script in tools/convert that must be run before the
	// model can be used; empty for a model that is now in use.
	Convert string
}

// partials is the subfolder for unfinished work, ignored as dot names are.
const partials = ".partial"

// Pull downloads a model, or all models of a profile, from the catalog, and
// starts using it. It resumes interrupted downloads, and checks a file's hash
// before the file gets its final name. Pull returns the stored models even if a
// later one failed. Errors: ErrMissing (name, or file at the source), ErrBroken
// (unexpected content), ErrOffline. Pulls and imports into a folder wait for one
// another.
func (s *Store) Pull(ctx context.Context, name string) ([]Stored, error) {
	entries, err := Find(name)
	if err != nil {
		return nil, err
	}
	return s.pull(ctx, entries)
}

func (s *Store) pull(ctx context.Context, entries []Entry) ([]Stored, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f := s.fetcher()
	if s.Client == nil {
		defer f.Client.CloseIdleConnections()
	}
	var done []Stored
	for i, e := range entries {
		if s.Progress != nil {
			f.Progress = func(p fetch.Progress) {
				s.Progress(Progress{Model: e.Name, File: p.File, Done: p.Done, Total: p.Total, Resumed: p.Resumed})
			}
		}
		stored, err := s.pullOne(ctx, f, e)
		if err != nil {
			return done, fmt.Errorf("model %s%s: %w", e.Name, listed(entries[i+1:]), err)
		}
		done = append(done, *stored)
	}
	return done, nil
}

// listed names models that are not tried because one before them failed.
func listed(entries []Entry) string {
	if len(entries) == 0 {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return ", before " + strings.Join(names, ", ")
}

func (s *Store) pullOne(ctx context.Context, f *fetch.Fetcher, c Entry) (*Stored, error) {
	m, err := s.manifest()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(s.Dir, c.Name)
	stored := &Stored{Role: c.Role, Name: c.Name, Dir: target, Convert: c.Convert}
	local, used := c.entry(c.Name), c.entry(c.Name)
	record := func(sums map[string]string) {
		for _, a := range c.Files {
			local.Files[a.Part] = a.Name
			used.add(a.Part, path.Join(c.Name, a.Name), sums[a.Name])
			stored.Files = append(stored.Files, models.File{Part: a.Part, Name: a.Name, Path: filepath.Join(target, a.Name), SHA256: sums[a.Name]})
		}
	}
	use := func() (*Stored, error) {
		if c.Convert != "" {
			return stored, nil
		}
		return stored, s.use(m, c.Role, used)
	}
	recorded := m.hashes(c.Role, c.Name)
	if sums, ok := s.present(c, recorded); ok {
		stored.Already = true
		record(sums)
		return use()
	}

	if second, err := s.secondSource(m, c); second != nil || err != nil {
		return second, err
	}
	staging := filepath.Join(s.Dir, partials, c.Name)
	if err := os.MkdirAll(staging, 0o755); err != nil {
		return nil, err
	}
	if c.Repackaged != nil || c.Package != nil { // stop at the first attempt that transfers nothing
		once := *f
		once.Attempts, f = 1, &once
	}
	sums, err := s.stage(ctx, f, c, recorded, staging, stored)
	if errors.Is(err, ErrOffline) && c.Repackaged != nil {
		second, other := s.repackaged(ctx, c)
		if other != nil {
			return nil, fmt.Errorf("%w\nthe second source: %w", err, other)
		}
		return second, nil
	}
	if errors.Is(err, ErrOffline) && c.Package != nil {
		var other error
		if sums, other = s.published(ctx, c, staging, stored); other != nil {
			return nil, fmt.Errorf("%w\nthe second source: %w", err, other)
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	record(sums)
	if c.Convert == "" {
		if _, err := local.open(staging, c.Role); err != nil {
			// The content differs from the catalog: resuming would not help.
			os.RemoveAll(staging)
			return nil, err
		}
	}
	if err := replaceDir(staging, target); err != nil {
		return nil, err
	}
	return use()
}

// stage fetches an entry's files into staging and returns their hashes.
func (s *Store) stage(ctx context.Context, f *fetch.Fetcher, c Entry, recorded map[string]string, staging string, stored *Stored) (map[string]string, error) {
	sums := map[string]string{}
	parts := filepath.Join(s.Dir, partials)
	if c.Archive != nil {
		part := fetch.PartFile(parts, *c.Archive)
		if _, err := fetchModelFile(ctx, f, *c.Archive, part); err != nil {
			return nil, err
		}
		if c.Archive.SHA256 == "" {
			stored.Trusted = append(stored.Trusted, c.Archive.Name)
		}
		defer os.Remove(part)
		if err := emptyDir(staging); err != nil {
			return nil, err
		}
		wanted := func(name string) bool {
			return slices.ContainsFunc(c.Files, func(a Asset) bool { return a.Name == name })
		}
		if err := unpackModel(ctx, part, staging, wanted); err != nil {
			return nil, err
		}
		for _, a := range c.Files {
			file := filepath.Join(staging, a.Name)
			sum, size, err := fetch.HashFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("%w: archive %s: expected the file %s in it, found none", models.ErrBroken, c.Archive.Name, a.Name)
			}
			if err != nil {
				return nil, err
			}
			if a.Size > 0 && size != a.Size || a.SHA256 != "" && sum != a.SHA256 {
				return nil, fmt.Errorf("%w: archive %s: %s: expected %d bytes, sha256 %s; found %d, %s",
					models.ErrBroken, c.Archive.Name, a.Name, a.Size, a.SHA256, size, sum)
			}
			sums[a.Name] = sum
		}
		return sums, nil
	}
	for _, a := range c.Files {
		d := a.Download
		if d.SHA256 == "" {
			// Trust on first use: from then on the recorded hash counts.
			if d.SHA256 = recorded[path.Join(c.Name, a.Name)]; d.SHA256 == "" {
				stored.Trusted = append(stored.Trusted, a.Name)
			}
		}
		file := filepath.Join(staging, a.Name)
		if d.SHA256 != "" {
			if sum, _, err := fetch.HashFile(file); err == nil && sum == d.SHA256 {
				sums[a.Name] = sum // an interrupted pull has fetched this file
				continue
			}
		}
		part := fetch.PartFile(parts, d)
		sum, err := fetchModelFile(ctx, f, d, part)
		if err != nil {
			return nil, err
		}
		if err := os.Rename(part, file); err != nil {
			return nil, err
		}
		sums[a.Name] = sum
	}
	return sums, nil
}

// present reports whether the folder has all files of a catalog entry, with the
// published or recorded hashes.
func (s *Store) present(c Entry, recorded map[string]string) (map[string]string, bool) {
	sums := map[string]string{}
	for _, a := range c.Files {
		want := cmp.Or(a.SHA256, recorded[path.Join(c.Name, a.Name)])
		sum, _, err := fetch.HashFile(filepath.Join(s.Dir, c.Name, a.Name))
		if err != nil || want == "" || sum != want {
			return nil, false
		}
		sums[a.Name] = sum
	}
	return sums, true
}

// add records a file and its hash.
func (e *entry) add(part models.Part, name, sum string) {
	if part != models.PartData {
		e.Files[part] = name
	}
	e.SHA256[name] = sum
}

// hashes returns the recorded hashes of a model, by file name.
func (m *manifest) hashes(role models.Role, name string) map[string]string {
	for _, e := range m.Roles[string(role)] {
		if e.name() == name {
			return e.SHA256
		}
	}
	return nil
}

// manifest reads the folder's manifest. If there is none, it creates one with
// the models in the folder, so that a pulled model is added to manually copied
// ones instead of hiding them. A folder with several models for one role is an
// error: a manifest without them would hide them.
func (s *Store) manifest() (*manifest, error) {
	m, err := readManifest(s.Dir)
	if err == nil || !errors.Is(err, models.ErrMissing) {
		return m, err
	}
	found, _, err := recognizeFolder(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &manifest{Name: filepath.Base(s.Dir), Roles: map[string]oneOrMany[entry]{}}, nil
	}
	return found, err
}

// use selects a model for its role (or as one of several) in the manifest.
func (s *Store) use(m *manifest, role models.Role, e entry) error {
	if m.Roles == nil {
		m.Roles = map[string]oneOrMany[entry]{}
	}
	key := string(role)
	if role != models.RoleOptimized {
		m.Roles[key] = nil
	}
	m.Roles[key] = append(slices.DeleteFunc(m.Roles[key], func(o entry) bool { return o.name() == e.name() }), e)
	return writeJSON(filepath.Join(s.Dir, manifestName), m)
}

// replaceDir replaces target with the folder staging, after syncing its files.
func replaceDir(staging, target string) error {
	if err := syncFiles(staging); err != nil {
		return err
	}
	old := staging + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(staging, target); err != nil {
		if undo := os.Rename(old, target); !errors.Is(undo, fs.ErrNotExist) {
			return errors.Join(err, undo)
		}
		return err
	}
	return os.RemoveAll(old)
}

// syncFiles syncs a folder and its files to disk, so that no power failure
// leaves a model's name without its content.
func syncFiles(dir string) error {
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, name := range append(names, ".") {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// emptyDir creates a folder, or empties it.
func emptyDir(dir string) error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)) }

// modelName turns any text into a safe folder name.
func modelName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-+=", r):
			return r
		}
		return '-'
	}, s)
	if len(s) > 100 {
		s = s[:100]
	}
	return cmp.Or(strings.Trim(s, ".-"), "model")
}

// errLocked marks a model folder that another pull or import is using.
var errLocked = errors.New("model folder in use")

// lockPoll is the time between looks at a lock of another process.
const lockPoll = 200 * time.Millisecond

// lock creates and locks the folder, after the pulls and imports of others. The
// kernel releases the lock when the process ends for any reason.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if s.Dir == "" {
		return nil, fmt.Errorf("%w: no model folder is named", models.ErrMissing)
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, partials), 0o755); err != nil {
		return nil, fmt.Errorf("model folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, partials, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("model folder: %w", err)
	}
	waits := false
	for {
		if err = host.TryLock(f); !errors.Is(err, host.ErrLocked) {
			break
		}
		if !waits && s.Waiting != nil {
			s.Waiting()
		}
		if waits = true; !backoff.Sleep(ctx, lockPoll) {
			f.Close()
			return nil, fmt.Errorf("%w: %s: another process is pulling or importing: %w", errLocked, s.Dir, context.Cause(ctx))
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("model folder: lock: %w", err)
	}
	return func() { f.Close() }, nil
}
