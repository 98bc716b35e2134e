package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrAmbiguous marks a folder that fits a role in more than one way and does
// not say which is meant.
var ErrAmbiguous = errors.New("several models for one role")

// Load puts a set together from what a user names: a model per role given as a
// file, then those of a folder, then the fallback. A file or a folder that is
// named must be there and sound.
type Load struct {
	// Files are models given by name, at most one per role. A file's tokens and
	// other parts are looked for beside it.
	Files map[Role]string
	// Dir is the model folder; empty for none.
	Dir string
	// DirOptional says that Dir is a default that need not exist.
	DirOptional bool
	// Fallback fills the roles that are left; nil for none.
	Fallback *Set
}

// Open opens the set.
func (l Load) Open() (*Set, error) {
	set := &Set{}
	for _, role := range Roles() {
		if file := l.Files[role]; file != "" {
			m, err := OpenFile(role, file)
			if err != nil {
				return nil, err
			}
			set.Models = append(set.Models, *m)
		}
	}
	for role := range l.Files {
		if _, err := ParseRole(string(role)); err != nil {
			return nil, err
		}
	}
	if l.Dir != "" {
		dir, err := OpenDir(l.Dir)
		switch {
		case err == nil:
			set = set.Merge(dir)
			set.Name = dir.Name
		case l.DirOptional && errors.Is(err, fs.ErrNotExist):
		default:
			return nil, err
		}
	}
	return set.Merge(l.Fallback), nil
}

// OpenDir opens the models of a folder: those that its otograph.json names, or,
// without one, those recognised among its files and the files of its
// subfolders. A folder that does not exist is ErrMissing (and fs.ErrNotExist); a
// file that is named but not there ErrMissing; one that is damaged or of another
// contract ErrBroken.
func OpenDir(dir string) (*Set, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: model folder %s: %w", ErrMissing, dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s: expected a folder of models, found a file", ErrBroken, dir)
	}
	m, err := readManifest(dir)
	switch {
	case err == nil:
		return m.open(dir)
	case errors.Is(err, ErrMissing):
		return scan(dir)
	}
	return nil, err
}

// OpenFile opens the model that a file (or a folder with one model) is, for a
// role. Where the folder's otograph.json names the file, what it says counts.
func OpenFile(role Role, file string) (*Model, error) {
	if _, err := ParseRole(string(role)); err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		set, err := OpenDir(file)
		if err != nil {
			return nil, err
		}
		m, err := set.Need(role)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", file, err)
		}
		return m, nil
	}
	if m, err := readManifest(filepath.Dir(file)); err == nil {
		for _, e := range m.Roles[string(role)] {
			for _, name := range e.Files {
				if path.Clean(name) == filepath.Base(file) {
					return e.open(filepath.Dir(file), role)
				}
			}
		}
	}
	found, err := Recognise(file)
	if err != nil {
		return nil, fmt.Errorf("role %s: %w", role, err)
	}
	if found.Role != role {
		return nil, wrongRole(file, role, found)
	}
	e := entry{Files: map[Part]string{found.Part: filepath.Base(file)}}
	if err := e.companions(filepath.Dir(file), found); err != nil {
		return nil, err
	}
	return e.open(filepath.Dir(file), role)
}

func wrongRole(file string, role Role, found *Recognised) error {
	return fmt.Errorf("%w: %s: role %s: expected %s; found a model for role %s (%s): %s",
		ErrBroken, file, role, strings.Join(contractsOf(role), " or "), found.Role, found.Contract, found.Signature)
}

// open opens the models of a manifest.
func (m *manifest) open(dir string) (*Set, error) {
	set := &Set{Name: m.Name}
	if set.Name == "" {
		set.Name = filepath.Base(dir)
	}
	for _, role := range Roles() {
		for _, e := range m.Roles[string(role)] {
			opened, err := e.open(dir, role)
			if err != nil {
				return nil, err
			}
			set.Models = append(set.Models, *opened)
		}
	}
	return set, nil
}

// mainPart is the part that stands for the entry's model.
func (e *entry) mainPart() Part {
	if e.Files[PartModel] != "" {
		return PartModel
	}
	return PartEncoder
}

// partOrder is the order of a model's files.
var partOrder = []Part{PartModel, PartEncoder, PartDecoder, PartJoiner, PartDecoderJoint, PartTokens, PartCMVN, PartConfig, PartLM, PartData}

// texts are the parts that are read into memory as they are.
var texts = []Part{PartTokens, PartCMVN, PartConfig, PartLM}

// open checks an entry's files against its role and contract, and completes it
// from what the files and the catalog say.
func (e entry) open(dir string, role Role) (*Model, error) {
	m := &Model{
		Role: role, Name: e.name(), Contract: e.Contract, Languages: slices.Clone(e.Languages), Licence: e.Licence,
		WindowSeconds: e.WindowSeconds, SameSpeaker: e.SameSpeaker, KnownVoice: e.KnownVoice, SampleRate: e.SampleRate, NoPrompts: e.NoPrompts,
	}
	for _, part := range partOrder {
		name, ok := e.Files[part]
		if !ok {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s: role %s: %s expected here, found nothing", ErrMissing, file, role, part)
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s: role %s: expected a file, found a %s", ErrBroken, file, role, kind(info.Mode()))
		}
		m.Files = append(m.Files, File{Part: part, Name: path.Base(name), Path: file, Size: info.Size(), SHA256: e.SHA256[name]})
		if slices.Contains(texts, part) {
			limit := int64(maxText)
			if part == PartLM {
				limit = maxLM
			}
			if info.Size() > limit {
				return nil, fmt.Errorf("%w: %s: role %s: expected %s of at most %d bytes, found %d", ErrBroken, file, role, part, limit, info.Size())
			}
			continue
		}
		found, err := Recognise(file)
		switch {
		case errors.Is(err, errUnknownGraph) && e.Contract != "" && role != RoleStandard:
			// The engine checks inputs and outputs when it opens it.
			continue
		case err != nil:
			return nil, fmt.Errorf("role %s: %w", role, err)
		case found.Role != role:
			return nil, wrongRole(file, role, found)
		case found.Part != part:
			return nil, fmt.Errorf("%w: %s: role %s: expected a %s, found a %s: %s", ErrBroken, file, role, part, found.Part, found.Signature)
		case found.Contract == "" && e.Contract == "":
			return nil, fmt.Errorf("%w: %s: role %s: it could be of the contracts %s and does not tell; name one in %s. It has %s",
				ErrAmbiguous, file, role, strings.Join(found.candidates, ", "), ManifestName, found.Signature)
		case found.Contract == "" && !slices.Contains(found.candidates, e.Contract),
			found.Contract != "" && e.Contract != "" && found.Contract != e.Contract:
			return nil, fmt.Errorf("%w: %s: role %s: expected contract %s, found %s: %s",
				ErrBroken, file, role, e.Contract, cmp.Or(found.Contract, strings.Join(found.candidates, " or ")), found.Signature)
		}
		if m.Contract == "" {
			m.Contract = found.Contract
		}
		if len(m.Languages) == 0 {
			m.Languages = found.Languages
		}
		m.SampleRate = cmp.Or(m.SampleRate, found.SampleRate)
		for _, external := range found.External {
			data := filepath.Join(filepath.Dir(file), external)
			info, err := os.Stat(data)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: role %s: %s keeps its weights in it, found nothing", ErrMissing, data, role, path.Base(name))
			}
			m.Files = append(m.Files, File{
				Part: PartData, Name: external, Path: data, Size: info.Size(), SHA256: e.SHA256[path.Join(path.Dir(name), external)],
			})
		}
	}
	if err := complete(m, dir); err != nil {
		return nil, err
	}
	published(m)
	return m, nil
}

// maxText bounds token lists and the like (bytes); the largest published one
// has 0.3 MB.
const maxText = 32 << 20

// maxLM bounds a language model (bytes), which is read into memory.
const maxLM = 2 << 30

// complete checks that a model has all the parts that its contract needs.
func complete(m *Model, dir string) error {
	if m.Role != RoleOptimized {
		return nil
	}
	need := []Part{PartModel, PartTokens}
	if m.Contract == ContractNeMoTransducer {
		need = []Part{PartEncoder, PartTokens}
		if _, ok := m.File(PartDecoderJoint); !ok {
			need = []Part{PartEncoder, PartDecoder, PartJoiner, PartTokens}
		}
	}
	for _, part := range need {
		if _, ok := m.File(part); !ok {
			return fmt.Errorf("%w: %s: role %s: model %s (%s) expects a %s beside it, found none in %s",
				ErrMissing, m.Main().Path, m.Role, m.Name, m.Contract, part, dir)
		}
	}
	return nil
}

// published fills in what the catalog knows of a published file (languages,
// licence, figures), told by name and size, where nothing else said it.
func published(m *Model) {
	main := m.Main()
	for _, e := range Catalog() {
		if e.Role != m.Role {
			continue
		}
		for _, f := range e.Files {
			if f.Name != main.Name || f.Size == 0 || f.Size != main.Size {
				continue
			}
			if len(m.Languages) == 0 {
				m.Languages = slices.Clone(e.Languages)
			}
			m.Licence = cmp.Or(m.Licence, e.Licence)
			m.WindowSeconds = cmp.Or(m.WindowSeconds, e.WindowSeconds)
			m.SampleRate = cmp.Or(m.SampleRate, e.SampleRate)
			m.SameSpeaker = cmp.Or(m.SameSpeaker, e.SameSpeaker)
			return
		}
	}
}
