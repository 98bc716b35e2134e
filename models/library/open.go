// Package library manages models in folders. It opens a folder or a file as a
// models.Set, and adds models to a folder (pulled from the catalog of published
// files, or imported), with their hashes in otograph.json.
package library

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

	"github.com/otograph/otograph/models"
)

// ErrAmbiguous marks a folder that fits a role in several ways.
var ErrAmbiguous = errors.New("several models for one role")

// Load builds a set from named sources: first single files for roles, then a
// folder's models, then the fallback. They must exist and be valid.
type Load struct {
	// Files are models given as files, at most one per role. Their tokens and
	// other parts are expected in the same folder.
	Files map[models.Role]string
	// Dir is the model folder; empty for none.
	Dir string
	// DirOptional is set if Dir is a default that need not exist.
	DirOptional bool
	// Fallback fills the remaining roles; nil for none.
	Fallback *models.Set
}

// OrDefaultDir returns l with the default folder (DefaultDir) if Dir is empty.
// The folder need not exist unless OTOGRAPH_MODELS names it.
func (l Load) OrDefaultDir() Load {
	if l.Dir == "" {
		if dir, named, err := DefaultDir(); err == nil { // otherwise there is no data folder
			l.Dir, l.DirOptional = dir, !named
		}
	}
	return l
}

// Open opens the set.
func (l Load) Open() (*models.Set, error) {
	set := &models.Set{}
	for _, role := range models.Roles() {
		if file := l.Files[role]; file != "" {
			m, err := OpenFile(role, file)
			if err != nil {
				return nil, err
			}
			set.Models = append(set.Models, *m)
		}
	}
	for role := range l.Files {
		if _, err := models.ParseRole(string(role)); err != nil {
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

// OpenDir opens the models of a folder: all in its otograph.json or, without
// one, all recognized among its and its subfolders' files. It returns
// ErrMissing (and fs.ErrNotExist) for a folder that does not exist, ErrMissing
// for a listed file that does not exist, and ErrBroken for a damaged or unfit
// file.
func OpenDir(dir string) (*models.Set, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: model folder %s: %w (`otograph models pull` and `import` create it)", models.ErrMissing, dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s: expected a folder of models, found a file", models.ErrBroken, dir)
	}
	m, err := readManifest(dir)
	switch {
	case err == nil:
		return m.open(dir)
	case errors.Is(err, models.ErrMissing):
		return scan(dir)
	}
	return nil, err
}

// OpenFile opens the model in a file (or in a folder with one model) for a
// role. If the folder's otograph.json lists the file, its entry is used.
func OpenFile(role models.Role, file string) (*models.Model, error) {
	if _, err := models.ParseRole(string(role)); err != nil {
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
	found, err := models.Recognize(file)
	if err != nil {
		return nil, fmt.Errorf("role %s: %w", role, err)
	}
	if found.Role != role {
		return nil, wrongRole(file, role, found)
	}
	e, err := single(file, found)
	if err != nil {
		return nil, err
	}
	return e.open(filepath.Dir(file), role)
}

func wrongRole(file string, role models.Role, found *models.Recognized) error {
	return fmt.Errorf("%w: %s: role %s: expected %s; found a model for role %s (%s): %s",
		models.ErrBroken, file, role, strings.Join(models.ContractsOf(role), " or "), found.Role, found.Contract, found.Signature)
}

func (m *manifest) open(dir string) (*models.Set, error) {
	set := &models.Set{Name: cmp.Or(m.Name, filepath.Base(dir))}
	for _, role := range models.Roles() {
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

// main returns the file that identifies the entry's model; "" for none.
func (e *entry) main() string { return cmp.Or(e.Files[models.PartModel], e.Files[models.PartEncoder]) }

// partOrder holds an entry's parts in the order of a model's files.
var partOrder = []models.Part{models.PartModel, models.PartEncoder, models.PartDecoder, models.PartJoiner, models.PartDecoderJoint, models.PartFrontend, models.PartAdapter, models.PartTokens, models.PartCMVN, models.PartConfig, models.PartLM, models.PartPLDA}

// texts lists the parts that are read into memory unchanged.
var texts = []models.Part{models.PartTokens, models.PartCMVN, models.PartConfig, models.PartLM, models.PartPLDA}

// open checks an entry's files against its role and contract, and completes it
// from the files and the catalog.
func (e entry) open(dir string, role models.Role) (*models.Model, error) {
	m := new(e.Model)
	m.Role, m.Name, m.Languages, m.AlignmentHeads = role, e.name(), slices.Clone(e.Languages), slices.Clone(e.AlignmentHeads)
	for _, part := range partOrder {
		name, ok := e.Files[part]
		if !ok {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s: role %s: %s expected here, found nothing", models.ErrMissing, file, role, part)
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s: role %s: expected a regular file, found %s", models.ErrBroken, file, role, info.Mode())
		}
		m.Files = append(m.Files, models.File{Part: part, Name: path.Base(name), Path: file, Size: info.Size(), SHA256: e.SHA256[name]})
		if slices.Contains(texts, part) {
			limit := int64(maxText)
			if part == models.PartLM {
				limit = maxLM
			}
			if info.Size() > limit {
				return nil, fmt.Errorf("%w: %s: role %s: expected %s of at most %d bytes, found %d", models.ErrBroken, file, role, part, limit, info.Size())
			}
			continue
		}
		found, err := models.Recognize(file)
		switch {
		case errors.Is(err, models.ErrUnknown) && e.Contract != "" && role != models.RoleStandard:
			// The engine checks inputs and outputs when it opens the model.
			continue
		case err != nil:
			return nil, fmt.Errorf("role %s: %w", role, err)
		case found.Role != role:
			return nil, wrongRole(file, role, found)
		case found.Part != part:
			return nil, fmt.Errorf("%w: %s: role %s: expected a %s, found a %s: %s", models.ErrBroken, file, role, part, found.Part, found.Signature)
		case found.Contract == "" && e.Contract == "":
			return nil, fmt.Errorf("%w: %s: role %s: the contract could be %s; name one in %s. It has %s",
				ErrAmbiguous, file, role, strings.Join(found.Candidates, ", "), manifestName, found.Signature)
		case found.Contract == "" && !slices.Contains(found.Candidates, e.Contract),
			found.Contract != "" && e.Contract != "" && found.Contract != e.Contract:
			return nil, fmt.Errorf("%w: %s: role %s: expected contract %s, found %s: %s",
				models.ErrBroken, file, role, e.Contract, cmp.Or(found.Contract, strings.Join(found.Candidates, " or ")), found.Signature)
		}
		m.Contract = cmp.Or(m.Contract, found.Contract)
		if len(m.Languages) == 0 {
			m.Languages = found.Languages
		}
		m.SampleRate = cmp.Or(m.SampleRate, found.SampleRate)
		m.NoTranslation = m.NoTranslation || found.NoTranslation
		for _, external := range found.External {
			data := filepath.Join(filepath.Dir(file), external)
			info, err := os.Stat(data)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: role %s: %s keeps its weights in it, found nothing", models.ErrMissing, data, role, path.Base(name))
			}
			m.Files = append(m.Files, models.File{
				Part: models.PartData, Name: external, Path: data, Size: info.Size(), SHA256: e.SHA256[path.Join(path.Dir(name), external)],
			})
		}
	}
	if err := complete(m, dir); err != nil {
		return nil, err
	}
	published(m)
	return m, nil
}

// maxText limits token lists and other texts; the largest has 0.3 MB.
const maxText = 32 << 20

// maxLM limits a language model (bytes), which is read into memory.
const maxLM = 2 << 30

// complete checks that a model has all the parts that its contract needs.
func complete(m *models.Model, dir string) error {
	if m.Role != models.RoleOptimized {
		return nil
	}
	need := []models.Part{models.PartModel, models.PartTokens}
	switch m.Contract {
	case models.ContractMoonshine:
		need = []models.Part{models.PartEncoder, models.PartDecoder, models.PartTokens}
		stream := []models.Part{models.PartFrontend, models.PartAdapter, models.PartJoiner}
		if slices.ContainsFunc(m.Files, func(f models.File) bool { return slices.Contains(stream, f.Part) }) {
			need = append(need, stream...)
		}
	case models.ContractNeMoTransducer, models.ContractGigaAMTransducer, models.ContractIcefallTransducer:
		need = []models.Part{models.PartEncoder, models.PartTokens}
		if _, ok := m.File(models.PartDecoderJoint); !ok {
			need = append(need, models.PartDecoder, models.PartJoiner)
		}
	}
	for _, part := range need {
		if _, ok := m.File(part); !ok {
			return fmt.Errorf("%w: %s: role %s: model %s (%s) expects its %s in the same folder, found none in %s",
				models.ErrMissing, m.Main().Path, m.Role, m.Name, m.Contract, part, dir)
		}
	}
	return nil
}

// published fills in the catalog's facts about a published file (languages,
// license, figures), identified by name and size, unless they are already set.
func published(m *models.Model) {
	main := m.Main()
	if main.Size == 0 {
		return
	}
	for e := range publishedAs(m.Role, main.Name, main.Size) {
		if len(m.Languages) == 0 {
			m.Languages = slices.Clone(e.Languages)
		}
		m.License = cmp.Or(m.License, e.License)
		m.WindowSeconds = cmp.Or(m.WindowSeconds, e.WindowSeconds)
		m.SampleRate = cmp.Or(m.SampleRate, e.SampleRate)
		m.SameSpeaker = cmp.Or(m.SameSpeaker, e.SameSpeaker)
		if m.OneVoice == 0 {
			m.OneVoice, m.TwoVoices = e.OneVoice, e.TwoVoices
		}
		return
	}
}

// Recognizers returns every recognizer of a folder (Load only takes one for
// each role and language): first the ones listed in otograph.json, then the
// others in the folder and its subfolders, sorted by name. It skips unusable
// files. A folder that does not exist has none.
func Recognizers(dir string) ([]models.Model, error) {
	if _, err := os.Stat(dir); dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []models.Model
	add := func(role models.Role, list []entry) {
		for _, e := range list {
			m, err := e.open(dir, role)
			if err != nil || slices.ContainsFunc(all, func(o models.Model) bool { return o.Main().Path == m.Main().Path || o.Name == m.Name }) {
				continue
			}
			all = append(all, *m)
		}
	}
	roles := []models.Role{models.RoleStandard, models.RoleOptimized}
	m, err := readManifest(dir)
	switch {
	case err == nil:
		for _, role := range roles {
			add(role, m.Roles[string(role)])
		}
	case !errors.Is(err, models.ErrMissing):
		return nil, err
	}
	folders, err := foldersOf(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		entries, _, err := recognizeFiles(dir, folder, "")
		if err != nil {
			continue // a broken file: all of its folder is skipped
		}
		for _, role := range roles {
			list := entries[role]
			for i := range list {
				if len(list) > 1 { // a single model has the folder's name, several have the names of their files
					list[i].Name = stem(filepath.Base(list[i].main()))
				}
			}
			add(role, list)
		}
	}
	return all, nil
}
