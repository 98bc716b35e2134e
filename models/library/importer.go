package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/models"
)

// ImportOptions describes what a model's files do not state. Zero fields are
// filled in from the files and the catalog.
type ImportOptions struct {
	// Name is the model's name in the folder; empty means the file's.
	Name string
	// Role, if set, is the required role of the model.
	Role models.Role
	// Contract, if set, is the required contract; it also decides if several
	// are possible.
	Contract      string
	Languages     []string
	License       string
	WindowSeconds float64 // seconds
	SampleRate    int     // Hz
	SameSpeaker   float64 // cosine
}

// Import copies a model into the folder, records its hashes and starts using
// it. source is a model file (its tokens and other parts are copied as well), a
// folder, or an archive (.tar.bz2, .tar.gz, .tar) of models. Nothing is
// installed unless it is recognized.
func (s *Store) Import(ctx context.Context, source string, o ImportOptions) ([]Stored, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	info, err := os.Stat(source)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("%w: %s: no such file or folder", models.ErrMissing, source)
		}
		return nil, err
	}
	dir, base := filepath.Dir(source), filepath.Base(source)
	var found map[models.Role][]entry
	var ignored []error
	switch {
	case info.IsDir():
		dir = source
		found, ignored, err = recognizeFiles(dir, ".")
	case isArchive(base):
		dir = filepath.Join(s.Dir, partials, "unpacked")
		if err := emptyDir(dir); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if _, err := unpack(ctx, source, dir, worthUnpacking); err != nil {
			return nil, err
		}
		for _, end := range []string{".bz2", ".gz", ".tbz2", ".tgz", ".tar"} {
			base = strings.TrimSuffix(base, end)
		}
		found, ignored, err = recognizeFiles(dir, ".")
	default:
		found, err = recognizeOne(source)
	}
	if err != nil {
		return nil, err
	}
	var done []Stored
	for _, role := range models.Roles() {
		for _, e := range found[role] {
			if o.Role != "" && o.Role != role {
				if info.IsDir() || isArchive(filepath.Base(source)) {
					continue
				}
				return done, fmt.Errorf("%w: %s: expected a model for role %s, found one for %s", models.ErrBroken, source, o.Role, role)
			}
			if o.Contract != "" {
				if served, ok := models.ContractRole(o.Contract); !ok || served != role {
					return done, fmt.Errorf("%w: contract: expected one of %s, found %q", models.ErrBroken, strings.Join(models.ContractsOf(role), ", "), o.Contract)
				}
			}
			stored, err := s.importOne(ctx, dir, base, role, e, o)
			if err != nil {
				return done, err
			}
			done = append(done, *stored)
		}
	}
	if done == nil {
		reasons := ""
		for _, why := range ignored {
			reasons += "\n" + why.Error()
		}
		return nil, fmt.Errorf("%w: %s: expected a model%s, found none%s", models.ErrMissing, source, forRole(o.Role), reasons)
	}
	return done, nil
}

func forRole(role models.Role) string {
	if role == "" {
		return ""
	}
	return " for role " + string(role)
}

// worthUnpacking reports whether a file belongs to a model; archives often
// contain test recordings as well.
func worthUnpacking(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".onnx", ".bin", ".data", ".weights", ".onnx_data", ".mvn":
		return true
	}
	return slices.Contains([]string{
		"tokens.txt", "vocab.txt", "units.txt", "tokens.json", "vocab.json", "config.json", "preprocessor_config.json",
	}, name)
}

// recognizeOne returns an entry for a single model file.
func recognizeOne(file string) (map[models.Role][]entry, error) {
	found, err := models.Recognize(file)
	if err != nil {
		return nil, err
	}
	if found.Helper {
		return nil, fmt.Errorf("%w: %s: a feature graph, not a model: %s", models.ErrUnsupported, file, found.Signature)
	}
	e := entry{Files: map[models.Part]string{found.Part: filepath.Base(file)}}
	if err := e.companions(filepath.Dir(file), found); err != nil {
		return nil, err
	}
	return map[models.Role][]entry{found.Role: {e}}, nil
}

func (s *Store) importOne(ctx context.Context, dir, base string, role models.Role, e entry, o ImportOptions) (*Stored, error) {
	e.Contract, e.Languages, e.License = o.Contract, o.Languages, o.License
	e.WindowSeconds, e.SampleRate, e.SameSpeaker = o.WindowSeconds, o.SampleRate, o.SameSpeaker
	if err := e.check(role); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Files[e.mainPart()]), err)
	}
	m, err := e.open(dir, role)
	if err != nil {
		return nil, err
	}
	name := modelName(cmp.Or(o.Name, e.importName(base, dir)))
	manifest, err := s.manifest()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(s.Dir, name)
	staging := filepath.Join(s.Dir, partials, "import-"+name)
	if err := emptyDir(staging); err != nil {
		return nil, err
	}
	defer os.RemoveAll(staging)

	recorded := entry{
		Name: name, Contract: m.Contract, Files: map[models.Part]string{}, SHA256: map[string]string{}, Languages: m.Languages,
		License: m.License, WindowSeconds: m.WindowSeconds, SampleRate: m.SampleRate, SameSpeaker: m.SameSpeaker, KnownVoice: m.KnownVoice, NoPrompts: m.NoPrompts,
		NoTranslation: m.NoTranslation, AlignmentHeads: m.AlignmentHeads, Calibration: m.Calibration,
	}
	stored := &Stored{Role: role, Name: name, Dir: target}
	same := true
	for _, f := range m.Files {
		sum, err := s.copyFile(ctx, name, f, filepath.Join(staging, f.Name))
		if err != nil {
			return nil, err
		}
		recorded.add(f.Part, path.Join(name, f.Name), sum)
		stored.Files = append(stored.Files, models.File{Part: f.Part, Name: f.Name, Path: filepath.Join(target, f.Name), Size: f.Size, SHA256: sum})
		if there, _, err := HashFile(filepath.Join(target, f.Name)); err != nil || there != sum {
			same = false
		}
	}
	switch _, err := os.Stat(target); {
	case err == nil && !same:
		return nil, fmt.Errorf("%s: a model named %q already exists with other content: pass --name", target, name)
	case err == nil:
		stored.Already = true
	default:
		if err := replaceDir(staging, target); err != nil {
			return nil, err
		}
	}
	return stored, s.use(manifest, role, recorded)
}

// importName returns a model's name from its file, or from the surrounding
// folder or archive if the file has a generic name.
func (e *entry) importName(base, dir string) string {
	own := stem(path.Base(e.Files[e.mainPart()]))
	if slices.Contains([]string{"model", "encoder", "encoder-model", "ggml-model"}, own) {
		if filepath.Base(dir) == "unpacked" || base != path.Base(e.Files[e.mainPart()]) {
			return base
		}
		if abs, err := filepath.Abs(dir); err == nil {
			return filepath.Base(abs)
		}
	}
	return own
}

// copyFile copies a model's file and returns its hash.
func (s *Store) copyFile(ctx context.Context, model string, f models.File, to string) (sum string, err error) {
	in, err := os.Open(f.Path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	w := io.MultiWriter(out, h, &reporter{report: s.Progress, p: Progress{Model: model, File: f.Name, Total: f.Size}})
	_, err = io.Copy(w, contextReader{ctx, in})
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// reporter reports the written bytes as progress.
type reporter struct {
	report func(Progress)
	p      Progress
}

func (r *reporter) Write(p []byte) (int, error) {
	if r.p.Done += int64(len(p)); r.report != nil {
		r.report(r.p)
	}
	return len(p), nil
}
