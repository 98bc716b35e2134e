package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
)

// Type is the storage type of a Whisper model's matrices.
type Type = ggmlfile.Type

// ImportOptions states properties that a model's files do not. Zero fields are
// filled in from the files and the catalog.
type ImportOptions struct {
	// Name is the model's name in the folder; empty means the file's name.
	Name string
	// Role, if set, is the required role of the model.
	Role models.Role
	// Contract, if set, is required, also where several are possible.
	Contract      string
	Languages     []string
	License       string
	WindowSeconds float64 // seconds
	SampleRate    int     // Hz
	SameSpeaker   float64 // cosine
	// Type is the type of a converted model's matrices: f16, q8_0 or q5_0; ""
	// is q8_0. Other models keep their own type, with a note.
	Type Type

	origin string // the converted model's name if the folder states none
	sha256 string // of the converted file, if known

	calibration *models.Calibration // of a model of the catalog
}

// Import copies a model into the folder, records its hashes and starts using
// it. source is a model file (its tokens and other parts are copied as well), a
// folder, or an archive (.tar.bz2, .tar.gz, .tar) of models. A Whisper model of
// CTranslate2 or of transformers is converted. Import installs nothing unless
// it recognizes the model.
func (s *Store) Import(ctx context.Context, source string, o ImportOptions) ([]Stored, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s: no such file or folder", models.ErrMissing, source)
	case err != nil:
		return nil, err
	}
	from := origin{dir: filepath.Dir(source), base: filepath.Base(source), folder: true}
	whisper := whisperFolder(source)
	archive, isArchive := archiveStem(from.base)
	switch {
	case info.IsDir():
		from.dir = source
	case isArchive:
		defer os.RemoveAll(s.unpacked())
		if err := emptyDir(s.unpacked()); err != nil {
			return nil, err
		}
		if err := unpackModel(ctx, source, s.unpacked(), worthUnpacking); err != nil {
			return nil, err
		}
		from.dir, from.base, from.unpacked = s.unpacked(), archive, true
		if whisper = whisperFolder(from.dir); whisper != "" {
			o.Name, o.origin = cmp.Or(o.Name, from.base), filepath.Base(source)
		}
	default:
		from.folder = false
	}
	if whisper == "" || !o.takes(models.RoleStandard) {
		return s.importAll(ctx, source, from, o)
	}
	stored, err := s.convert(ctx, whisper, o)
	if err != nil {
		return nil, err
	}
	return []Stored{*stored}, nil
}

// origin is the location of an import's models.
type origin struct {
	dir      string // the folder of the files
	base     string // name of the file, folder or archive
	folder   bool   // may hold several models
	unpacked bool   // dir holds the files of an archive
}

func (o *ImportOptions) takes(role models.Role) bool { return o.Role == "" || o.Role == role }

func (o *ImportOptions) check() error {
	if types := []Type{"", ggmlfile.F16, ggmlfile.Q8_0, ggmlfile.Q5_0}; !slices.Contains(types, o.Type) {
		return fmt.Errorf("%w: type: expected f16, q8_0 or q5_0, found %q", models.ErrBroken, o.Type)
	}
	if o.Contract != "" {
		role, ok := models.ContractRole(o.Contract)
		switch {
		case !ok && o.Role != "":
			return fmt.Errorf("%w: contract: expected one of %s, found %q", models.ErrBroken, strings.Join(models.ContractsOf(o.Role), ", "), o.Contract)
		case !ok:
			return fmt.Errorf("%w: contract: %q is not known", models.ErrBroken, o.Contract)
		case !o.takes(role):
			return fmt.Errorf("%w: contract: %q is for role %s, expected one for %s", models.ErrBroken, o.Contract, role, o.Role)
		}
	}
	return nil
}

func (s *Store) importAll(ctx context.Context, source string, from origin, o ImportOptions) ([]Stored, error) {
	var found map[models.Role][]entry
	var ignored []error
	var err error
	if from.folder {
		found, ignored, err = recognizeFiles(from.dir, ".", o.Contract)
	} else {
		found, err = recognizeOne(source, o.Contract)
	}
	if err != nil {
		return nil, err
	}
	var done []Stored
	for _, role := range models.Roles() {
		for _, e := range found[role] {
			if !o.takes(role) {
				if from.folder {
					continue
				}
				return done, fmt.Errorf("%w: %s: expected a model for role %s, found one for %s", models.ErrBroken, source, o.Role, role)
			}
			if served, _ := models.ContractRole(o.Contract); o.Contract != "" && served != role {
				return done, fmt.Errorf("%w: contract: expected one of %s, found %q", models.ErrBroken, strings.Join(models.ContractsOf(role), ", "), o.Contract)
			}
			stored, err := s.importOne(ctx, from, role, e, o)
			if err != nil {
				return done, err
			}
			if o.Type != "" {
				stored.Notes = append(stored.Notes, fmt.Sprintf("not converted: its precision stays, and the type %s has no effect", o.Type))
			}
			done = append(done, *stored)
		}
	}
	if done == nil {
		reasons := ""
		for _, why := range ignored {
			reasons += "\n" + why.Error()
		}
		expected := "a model"
		if o.Role != "" {
			expected += " for role " + string(o.Role)
		}
		return nil, fmt.Errorf("%w: %s: expected %s, found none%s", models.ErrMissing, source, expected, reasons)
	}
	return done, nil
}

// unpacked returns the folder for the files of an archive.
func (s *Store) unpacked() string { return filepath.Join(s.Dir, partials, "unpacked") }

// archiveStem returns the name of an archive that Import unpacks without its
// extension; ok is false for any other file.
func archiveStem(name string) (stem string, ok bool) {
	for _, end := range []string{".tar.bz2", ".tbz2", ".tar.gz", ".tgz", ".tar"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return name[:len(name)-len(end)], true
		}
	}
	return name, false
}

// worthUnpacking reports whether a file belongs to a model; archives often
// contain test recordings as well.
func worthUnpacking(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".onnx", ".ort", ".bin", ".data", ".weights", ".onnx_data", ".mvn", ".safetensors":
		return true
	}
	return strings.HasSuffix(name, "_vocab.txt") || slices.Contains([]string{
		pldaName, "tokens.txt", "vocab.txt", "units.txt", "tokens.json", "vocab.json", "config.json", "preprocessor_config.json",
		"vocabulary.json", "vocabulary.txt", "tokenizer.json", "added_tokens.json", "generation_config.json", "adapter_config.json",
		"model.safetensors.index.json",
	}, name)
}

// recognizeOne returns an entry for a single model file. contract, if set,
// applies to a graph of no known family.
func recognizeOne(file, contract string) (map[models.Role][]entry, error) {
	found, err := recognizeAs(file, contract)
	if err != nil {
		return nil, err
	}
	if found.Helper {
		return nil, fmt.Errorf("%w: %s: a feature graph, not a model: %s", models.ErrUnsupported, file, found.Signature)
	}
	e, err := single(file, found)
	return map[models.Role][]entry{found.Role: {e}}, err
}

// recognizeAs is like models.Recognize, but assigns the given contract, if any,
// to a graph of no known family. The engine checks its inputs and outputs.
func recognizeAs(file, contract string) (*models.Recognized, error) {
	found, err := models.Recognize(file)
	role, known := models.ContractRole(contract)
	if errors.Is(err, models.ErrUnknown) && known && role != models.RoleStandard {
		return &models.Recognized{Role: role, Contract: contract, Part: models.PartModel}, nil
	}
	return found, err
}

func (s *Store) importOne(ctx context.Context, from origin, role models.Role, e entry, o ImportOptions) (*Stored, error) {
	dir := from.dir
	e.Contract, e.Languages, e.License = o.Contract, o.Languages, cmp.Or(o.License, e.License)
	e.WindowSeconds, e.SampleRate, e.SameSpeaker = o.WindowSeconds, o.SampleRate, o.SameSpeaker
	if err := e.check(role); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.main()), err)
	}
	m, err := e.open(dir, role)
	if err != nil {
		return nil, err
	}
	name := modelName(cmp.Or(o.Name, e.importName(from)))
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

	recorded := entry{Model: *m, Files: map[models.Part]string{}, SHA256: map[string]string{}, Source: e.Source, SourceSHA256: e.SourceSHA256}
	recorded.Name = name
	if m.Contract == models.ContractWhisper && len(m.Languages) > 1 {
		recorded.Languages = e.Languages // all others that it has are found whenever the file is opened
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
		if there, _, err := fetch.HashFile(filepath.Join(target, f.Name)); err != nil || there != sum {
			same = false
		}
	}
	switch _, err := os.Stat(target); {
	case err == nil && !same && o.sha256 == "": // a model with a known hash replaces a damaged file
		return nil, fmt.Errorf("%s: a model named %q already exists with other content: pass --name", target, name)
	case err == nil && same:
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
func (e *entry) importName(from origin) string {
	main := path.Base(e.main())
	own := stem(main)
	if slices.Contains([]string{"model", "encoder", "encoder-model", "encoder_model", "ggml-model"}, own) {
		if from.unpacked || from.base != main {
			return from.base
		}
		if abs, err := filepath.Abs(from.dir); err == nil {
			return filepath.Base(abs)
		}
	}
	return own
}

// copyFile copies a model's file and returns its hash. A file that was created
// or unpacked for the import is linked instead if the file system supports it.
func (s *Store) copyFile(ctx context.Context, model string, f models.File, to string) (sum string, err error) {
	if strings.HasPrefix(f.Path, filepath.Join(s.Dir, partials)+string(filepath.Separator)) && os.Link(f.Path, to) == nil {
		sum, _, err = fetch.HashFile(to)
		return sum, err
	}
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
	_, err = io.Copy(w, fetch.Interruptible(ctx, in))
	if err = errors.Join(err, out.Close()); err != nil && ctx.Err() != nil {
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
