package library

import (
	_ "embed" // the catalog
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/models"
)

//go:embed catalog.json
var catalogJSON []byte

// Entry is a published model of the catalog.
type Entry struct {
	Name      string      `json:"name"`
	Role      models.Role `json:"role"`
	Contract  string      `json:"contract"`
	Languages []string    `json:"languages"` // empty: any, or all of Whisper's
	Licence   string      `json:"licence"`
	// Sources counts the independent public texts in which the hash was read. One
	// is weak evidence; 0 means that no hash is known.
	Sources int `json:"sources"`
	// Archive, if set, is the .tar.bz2 that holds the files.
	Archive *Download `json:"archive,omitempty"`
	Files   []Asset   `json:"files"`
	// Convert names the script in models/convert that makes an ONNX model of what
	// is downloaded; empty for what can be used as it is.
	Convert       string  `json:"convert,omitempty"`
	Note          string  `json:"note,omitempty"`
	WindowSeconds float64 `json:"window_seconds,omitempty"` // longest stretch for one pass, seconds
	SampleRate    int     `json:"sample_rate,omitempty"`    // Hz
	SameSpeaker   float64 `json:"same_speaker,omitempty"`   // cosine, 0 to 1
}

// Download is a file to fetch.
type Download struct {
	// Name is the file's name once fetched.
	Name string `json:"name"`
	// URL is where the publisher offers it; empty for a file of an archive.
	URL string `json:"url,omitempty"`
	// Size in bytes; 0 when no published text tells it.
	Size int64 `json:"size,omitempty"`
	// SHA256 in lower-case hex; empty when none is published: the first download
	// is then trusted and its hash recorded.
	SHA256 string `json:"sha256,omitempty"`
}

// Asset is a file of a catalog entry.
type Asset struct {
	Part models.Part `json:"part"`
	Download
}

// bytes is what a pull of the entry downloads, as far as sizes are known.
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

type catalogFile struct {
	Profiles map[string][]string `json:"profiles"`
	Models   []Entry             `json:"models"`
}

// catalog decodes the embedded file once. It is part of the program, so trouble
// with it is a mistake in the program; a test checks every entry.
var catalog = sync.OnceValue(func() catalogFile {
	var c catalogFile
	if err := strict(catalogJSON, &c); err != nil {
		panic(fmt.Sprintf("the embedded catalog: %v", err))
	}
	return c
})

// Catalog returns the published models that can be pulled by name, in the order
// of the roles. The slice is the caller's.
func Catalog() []Entry { return slices.Clone(catalog().Models) }

// Profiles returns the names of the profiles, each of which stands for one model
// per role.
func Profiles() []string {
	var names []string
	for name := range catalog().Profiles {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(profileOrder, a) - slices.Index(profileOrder, b) })
	return names
}

var profileOrder = []string{"small", "balanced", "best", "zh"}

// Find returns the entries that a name stands for: one for a model, one per role
// for a profile. An unknown name is ErrMissing, with the nearest names.
func Find(name string) ([]Entry, error) {
	wanted := []string{name}
	if profile, ok := catalog().Profiles[name]; ok {
		wanted = profile
	}
	var found []Entry
	for _, w := range wanted {
		i := slices.IndexFunc(catalog().Models, func(e Entry) bool { return e.Name == w })
		if i < 0 {
			return nil, fmt.Errorf("%w: the catalog has no model or profile %q; %s", models.ErrMissing, name, suggest(name))
		}
		found = append(found, catalog().Models[i])
	}
	return found, nil
}

// suggest names what was perhaps meant.
func suggest(name string) string {
	var near []string
	low := strings.ToLower(name)
	for _, e := range catalog().Models {
		if low != "" && (strings.Contains(e.Name, low) || strings.HasPrefix(low, e.Name)) && len(near) < 6 {
			near = append(near, e.Name)
		}
	}
	if near == nil {
		return fmt.Sprintf("profiles: %s; `otograph models list` names the models", strings.Join(Profiles(), ", "))
	}
	return "perhaps " + strings.Join(near, ", ")
}
