package library

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
)

// Status is the result of checking a file.
type Status string

// The results of a check.
const (
	StatusOK      Status = "ok"
	StatusChanged Status = "changed" // the hash differs from the recorded one
	StatusMissing Status = "missing"
	// StatusUnrecorded means that no hash is known.
	StatusUnrecorded Status = "unrecorded"
)

// Check is the result of checking one file.
type Check struct {
	Role        models.Role
	Model, Path string
	Status      Status
	// Want is the recorded or published hash, Got the file's; empty if unknown.
	Want, Got string
}

// Verify hashes every file of the folder's models, in use or not, and compares
// the recorded or published hash. A difference is a result, not an error.
func (s *Store) Verify(ctx context.Context) ([]Check, error) {
	m, err := s.manifest()
	if err != nil {
		return nil, err
	}
	var checks []Check
	seen := map[string]bool{}
	one := func(role models.Role, model, name, want string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		c := Check{Role: role, Model: model, Path: filepath.Join(s.Dir, filepath.FromSlash(name)), Want: want}
		sum, size, err := fetch.HashFile(c.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Status = StatusMissing
			checks = append(checks, c)
			return nil
		case err != nil:
			return err
		}
		c.Want = cmp.Or(c.Want, publishedHash(role, path.Base(name), size, sum))
		c.Got = sum
		switch c.Want {
		case "":
			c.Status = StatusUnrecorded
		case sum:
			c.Status = StatusOK
		default:
			c.Status = StatusChanged
		}
		checks = append(checks, c)
		return nil
	}
	for _, role := range models.Roles() {
		for _, e := range m.Roles[string(role)] {
			for _, name := range e.allFiles() {
				if err := one(role, e.name(), name, e.SHA256[name]); err != nil {
					return checks, err
				}
			}
		}
	}
	for _, c := range Catalog() {
		if info, err := os.Stat(filepath.Join(s.Dir, c.Name)); err != nil || !info.IsDir() {
			continue
		}
		for _, a := range c.Files {
			if err := one(c.Role, c.Name, path.Join(c.Name, a.Name), a.SHA256); err != nil {
				return checks, err
			}
		}
	}
	return checks, nil
}

// allFiles returns the names of an entry's files, with data files, in order.
func (e *entry) allFiles() []string {
	var names []string
	for _, part := range partOrder {
		if name := e.Files[part]; name != "" {
			names = append(names, name)
		}
	}
	var rest []string
	for name := range e.SHA256 {
		if !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}

// publishedHash returns the catalog's hash of a file with a name and size. If
// versions of one model share both, sum is preferred.
func publishedHash(role models.Role, name string, size int64, sum string) (published string) {
	for _, f := range publishedAs(role, name, size) {
		if f.SHA256 == sum {
			return sum
		}
		published = f.SHA256
	}
	return published
}

// publishedAs yields the catalog's files of a name and size, with their models.
func publishedAs(role models.Role, name string, size int64) iter.Seq2[Entry, Asset] {
	return func(yield func(Entry, Asset) bool) {
		for _, e := range Catalog() {
			for _, f := range e.Files {
				if e.Role == role && f.Name == name && f.Size == size && !yield(e, f) {
					return
				}
			}
		}
	}
}

// Listed is a line of the list of models.
type Listed struct {
	Role           models.Role
	Name, Contract string
	Languages      []string
	License        string
	// Size is the download size in bytes (0 if unknown) or, for a model that is
	// not in the catalog, the size on disk.
	Size int64
	// Profiles holds the profiles that include the model.
	Profiles []string
	// Installed reports whether the folder contains the model, InUse whether
	// the folder's otograph.json uses it.
	Installed, InUse bool
	// Catalog is nil for a model that is not in the catalog.
	Catalog *Entry
}

// List returns the catalog's models and the folder's own, by role.
func (s *Store) List() ([]Listed, error) {
	m, err := s.manifest()
	if err != nil {
		return nil, err
	}
	var lines []Listed
	for _, role := range models.Roles() {
		listed := map[string]bool{}
		for _, c := range Catalog() {
			if c.Role != role {
				continue
			}
			line := Listed{
				Role: role, Name: c.Name, Contract: c.Contract, Languages: c.Languages, License: c.License, Size: c.bytes(), Catalog: &c,
			}
			line.Profiles = slices.DeleteFunc(profiles(), func(p string) bool { return !slices.Contains(catalog().Profiles[p], c.Name) })
			line.Installed = true
			for _, a := range c.Files {
				info, err := os.Stat(filepath.Join(s.Dir, c.Name, a.Name))
				line.Installed = line.Installed && err == nil && (a.Size <= 0 || info.Size() == a.Size)
			}
			line.InUse = slices.ContainsFunc(m.Roles[string(role)], func(e entry) bool { return e.name() == c.Name })
			listed[c.Name] = true
			lines = append(lines, line)
		}
		for _, e := range m.Roles[string(role)] {
			if listed[e.name()] {
				continue
			}
			line := Listed{Role: role, Name: e.name(), Contract: e.Contract, Languages: e.Languages, License: e.License, Installed: true, InUse: true}
			for _, name := range e.allFiles() {
				info, err := os.Stat(filepath.Join(s.Dir, filepath.FromSlash(name)))
				if err != nil {
					line.Installed = false
					continue
				}
				line.Size += info.Size()
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}
