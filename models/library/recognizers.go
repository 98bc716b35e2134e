package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/otograph/otograph/models"
)

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
		found, _, err := recognizeFiles(dir, folder, "")
		if err != nil {
			continue // a broken file; the others in its folder are also unknown
		}
		for _, role := range roles {
			add(role, inFolder(found[role]))
		}
	}
	return all, nil
}

// inFolder names a folder's models: one after the folder, several by files.
func inFolder(found []entry) []entry {
	if len(found) > 1 {
		for i := range found {
			found[i].Name = stem(filepath.Base(found[i].main()))
		}
	}
	return found
}
