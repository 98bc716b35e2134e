package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
)

// sample draws size recordings, in the order of the manifest; 0 selects all.
func sample(items []bench.Item, size int, seed uint64) ([]bench.Item, error) {
	switch {
	case size < 0:
		return nil, &usageError{fmt.Errorf("--sample must be at least 1, got %d", size)}
	case size == 0 || size >= len(items):
		return items, nil
	}
	drawn := rand.New(rand.NewPCG(seed, uint64(len(items)))).Perm(len(items))[:size] //nolint:gosec // a sample, not a secret
	slices.Sort(drawn)
	out := make([]bench.Item, 0, size)
	for _, i := range drawn {
		out = append(out, items[i])
	}
	return out, nil
}

// compared returns the models of a folder, or the chosen ones with another
// recognizer from a file.
func (c *benchRunCmd) compared(path string) (set *models.Set, name string, err error) {
	f := c.modelFlags
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, "", err
	case info.IsDir():
		f.Models = path
		f.StandardModel, f.OptimizedModel, f.VADModel, f.EmbedderModel, f.TaggerModel = "", "", "", "", ""
	case filepath.Ext(path) == ".onnx":
		f.OptimizedModel = path
	default:
		f.StandardModel = path
	}
	set, err = f.open()
	return set, filepath.Base(filepath.Clean(path)), err
}

// modelName returns the names of the recognizers that a tier uses, "" for none.
func modelName(set *models.Set, tier string) string {
	roles := []models.Role{models.RoleOptimized, models.RoleStandard}
	switch tier {
	case "optimized":
		roles = roles[:1]
	case "standard":
		roles = roles[1:]
	}
	var names []string
	for _, role := range roles {
		if m, ok := set.Role(role); ok {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, " + ")
}

// otherRoles returns the roles, besides recognizers, in which two sets differ.
func otherRoles(a, b *models.Set) (list []string) {
	for _, role := range []models.Role{models.RoleVAD, models.RoleEmbedder, models.RoleSegmenter, models.RoleTagger} {
		x, _ := a.Role(role)
		y, _ := b.Role(role)
		name := func(m *models.Model) string {
			if m == nil {
				return "none"
			}
			return m.Name
		}
		if name(x) != name(y) || x != nil && x.Main().Path != y.Main().Path && x.Main().SHA256 != y.Main().SHA256 {
			list = append(list, fmt.Sprintf("%s (%s, %s)", role, name(x), name(y)))
		}
	}
	return list
}
