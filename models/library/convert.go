package library

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/whisperfolder"
)

// whisperFolder returns the folder of a Whisper model that requires a
// conversion: source itself, or the folder of its file with the weights. It
// returns "" for anything else.
func whisperFolder(source string) string {
	if info, err := os.Stat(source); err == nil && !info.IsDir() {
		if !whisperfolder.Holds(source) {
			return ""
		}
		source = filepath.Dir(source)
	}
	if dir, _ := whisperfolder.Snapshot(source); whisperfolder.Find(dir) != "" {
		return source
	}
	return ""
}

func convertedFile(name string) string { return fmt.Sprintf("ggml-%s.bin", name) }

// convert converts a folder's Whisper model to a ggml file and imports it.
func (s *Store) convert(ctx context.Context, source string, o ImportOptions) (*Stored, error) {
	dir, name := whisperfolder.Snapshot(source)
	if role, known := models.ContractRole(o.Contract); known && role != models.RoleStandard {
		return nil, fmt.Errorf("%w: contract: %q is for role %s, found Whisper in %s: pass --role %s for another model of that folder",
			models.ErrBroken, o.Contract, role, cmp.Or(o.origin, name), role)
	}
	folder, err := whisperfolder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	typ := cmp.Or(o.Type, ggmlfile.Q8_0)
	name = modelName(cmp.Or(o.Name, fmt.Sprintf("%s-%s", name, typ)))
	staging := filepath.Join(s.Dir, partials, "converted")
	if err := emptyDir(staging); err != nil {
		return nil, err
	}
	defer os.RemoveAll(staging)
	file := convertedFile(name)
	if err := s.write(ctx, folder, filepath.Join(staging, file), typ, name); err != nil {
		return nil, err
	}
	if o.sha256 != "" {
		if sum, _, err := fetch.HashFile(filepath.Join(staging, file)); err != nil || sum != o.sha256 {
			return nil, fmt.Errorf("%w: %s: expected sha256 %s after the conversion, found %s", models.ErrBroken, file, o.sha256, sum)
		}
	}
	e := entry{
		Model:  models.Model{License: folder.License, AlignmentHeads: folder.AlignmentHeads, Calibration: o.calibration},
		Files:  map[models.Part]string{models.PartModel: file},
		Source: fmt.Sprintf("%s of %s", folder.Layout, cmp.Or(folder.Origin, o.origin, filepath.Base(dir))), SourceSHA256: map[string]string{},
	}
	for _, path := range folder.Sources {
		sum, _, err := fetch.HashFile(path)
		if err != nil {
			return nil, err
		}
		e.SourceSHA256[filepath.Base(path)] = sum
	}
	o.Name, o.Contract = name, ""
	stored, err := s.importOne(ctx, origin{dir: staging, base: file}, models.RoleStandard, e, o)
	if err != nil {
		return nil, err
	}
	stored.Notes = append([]string{fmt.Sprintf("converted from %s to %s", e.Source, typ)}, folder.Notes...)
	if cmp.Or(o.License, e.License) == "" {
		stored.Notes = append(stored.Notes, "the folder states no license: that of the original model applies")
	}
	return stored, nil
}

// write writes the ggml file of a converted model.
func (s *Store) write(ctx context.Context, folder *whisperfolder.Folder, path string, typ ggmlfile.Type, model string) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	total := int64(0)
	for _, source := range folder.Sources {
		if info, err := os.Stat(source); err == nil {
			total += info.Size()
		}
	}
	progress := func(done float64) error {
		if s.Progress != nil {
			s.Progress(Progress{Model: model, File: filepath.Base(path), Done: int64(done * float64(total)), Total: total})
		}
		return context.Cause(ctx)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	if err := folder.Write(w, typ, progress); err != nil {
		return err
	}
	return w.Flush()
}
