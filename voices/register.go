// Package voices identifies speakers by their voices: a register of named voices
// and the rule by which a speaker counts as one of them.
package voices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/otograph/otograph/spec"
)

// ErrVoice marks a voice that cannot be stored, and a register with such a voice
// or without the form of one. The text names the field.
var ErrVoice = errors.New("voice not accepted")

// Limits of a register and its voices.
const (
	maxRegister = 64 << 20 // bytes per file
	maxName     = 64       // characters
	maxConsent  = 1000     // characters
	maxVectors  = 1000     // per voice
	maxNumbers  = 1024     // per vector
)

// Voice is a person's voice, as described by a speaker model. It identifies the
// person: keep it like a password, and only with that person's consent.
type Voice struct {
	Name string `json:"name"`
	// Model is the SHA-256 of the speaker model, which vectors depend on.
	Model   string    `json:"model"`
	Added   time.Time `json:"added"`
	Consent string    `json:"consent"` // the person's agreement and its date
	// Vectors have unit length, one per recording.
	Vectors [][]float32 `json:"vectors"`
	// Denied are vectors of unit length of others who got the name, or a
	// suggestion of it, by mistake: Identify does not name a voice that is more
	// like one of them. A vector that is also in Vectors is dropped.
	Denied [][]float32 `json:"denied,omitempty"`
}

// Register is a list of named voices.
type Register struct {
	Voices []Voice `json:"voices"`
}

// Read reads what Write wrote. Errors wrap ErrVoice and name voice and field.
func Read(r io.Reader) (*Register, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxRegister+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxRegister {
		return nil, fmt.Errorf("%w: the register is larger than %d bytes", ErrVoice, maxRegister)
	}
	var out, read Register
	if err := json.Unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("%w: expected a JSON object with voices: %w", ErrVoice, err)
	}
	for _, v := range read.Voices {
		if _, err := out.Add(v); err != nil {
			return nil, fmt.Errorf("voice %q: %w", spec.Shorten(v.Name), err)
		}
	}
	return &out, nil
}

// Write writes the register as JSON.
func (r *Register) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(Register{append([]Voice{}, r.Voices...)}) // never null
}

// plain returns a name with its letters composed, which the names of files are
// not on some systems, and without spaces around it.
func plain(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// Find returns the index of the entry of a name, in any case and Unicode form,
// from a speaker model; -1 if there is none.
func (r *Register) Find(name, model string) int {
	return slices.IndexFunc(r.Voices, func(v Voice) bool { return v.Model == model && strings.EqualFold(plain(v.Name), plain(name)) })
}

// Add adds a voice and returns its entry. If the name, in any case, already has
// vectors from the same model, the new ones are added to them, unless they are
// there already, and the newer date and consent replace the older ones. Errors
// wrap ErrVoice; the register is then unchanged.
func (r *Register) Add(v Voice) (*Voice, error) {
	v.Name = plain(v.Name)
	if err := v.check(); err != nil {
		return nil, err
	}
	dim, entry := len(v.Vectors[0]), Voice{}
	i := r.Find(v.Name, v.Model)
	if i >= 0 {
		entry, v.Name = r.Voices[i], r.Voices[i].Name
	}
	if j := slices.IndexFunc(r.Voices, func(o Voice) bool { return o.Model == v.Model }); j >= 0 && len(r.Voices[j].Vectors[0]) != dim {
		return nil, refuse("vectors: those of this model have %d numbers, found %d", len(r.Voices[j].Vectors[0]), dim)
	}
	var err error
	if v.Vectors, err = join("vectors", entry.Vectors, v.Vectors, nil, dim); err != nil {
		return nil, err
	}
	if v.Denied, err = join("denied", entry.Denied, v.Denied, v.Vectors, dim); err != nil {
		return nil, err
	}
	if i < 0 {
		i, r.Voices = len(r.Voices), append(r.Voices, v)
	}
	r.Voices[i] = v
	return &r.Voices[i], nil
}

// join returns some vectors, without the vectors in except, and further ones,
// normalized, each once. Errors name the field.
func join(field string, some, further, except [][]float32, dim int) (out [][]float32, err error) {
	out = slices.DeleteFunc(slices.Clone(some), func(x []float32) bool { return contains(except, x) })
	for _, x := range further {
		x = slices.Clone(x)
		if len(x) != dim || !Normalize(x) {
			return nil, refuse("%s: must all have %d finite numbers that are not all zero", field, dim)
		}
		if !contains(out, x) && !contains(except, x) {
			out = append(out, x)
		}
	}
	if len(out) > maxVectors {
		return nil, refuse("%s: the voice would have %d, and the limit is %d", field, len(out), maxVectors)
	}
	return out, nil
}

func contains(list [][]float32, x []float32) bool {
	return slices.ContainsFunc(list, func(y []float32) bool { return slices.Equal(x, y) })
}

// speakerName matches the names that results assign to unknown speakers.
var speakerName = regexp.MustCompile(`(?i)^(SPEAKER|CHANNEL)_[0-9]+$`)

var modelHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// check validates the fields.
func (v Voice) check() error {
	switch {
	case !spec.Printable(v.Name, maxName):
		return refuse("name: must be 1 to %d printable characters", maxName)
	case speakerName.MatchString(v.Name):
		return refuse("name: %q is reserved for speakers without a known voice", spec.Shorten(v.Name))
	case !spec.Printable(v.Consent, maxConsent):
		return refuse("consent: must be a note of 1 to %d printable characters: what the person agreed to, and when", maxConsent)
	case !modelHash.MatchString(v.Model):
		return refuse("model: must be the SHA-256 of the speaker model's file, 64 of the digits 0-9 and a-f, not %q", spec.Shorten(v.Model))
	case len(v.Vectors) == 0:
		return refuse("vectors: must be at least one")
	}
	for i, x := range v.Vectors {
		if len(x) == 0 || len(x) > maxNumbers {
			return refuse("vectors: number %d must have 1 to %d numbers, found %d", i+1, maxNumbers, len(x))
		}
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrVoice, fmt.Sprintf(format, args...))
}

// Has reports whether the register has voices of a speaker model.
func (r *Register) Has(model string) bool {
	return slices.ContainsFunc(r.Voices, func(v Voice) bool { return v.Model == model })
}

// Remove removes a name, in any case, for every model. It reports whether the
// name existed.
func (r *Register) Remove(name string) bool {
	before := len(r.Voices)
	r.Voices = slices.DeleteFunc(r.Voices, func(v Voice) bool { return strings.EqualFold(plain(v.Name), plain(name)) })
	return len(r.Voices) < before
}

// Clear overwrites the vectors of a register, which may be nil.
func (r *Register) Clear() {
	if r == nil {
		return
	}
	for _, v := range r.Voices {
		for _, x := range slices.Concat(v.Vectors, v.Denied) {
			clear(x)
		}
	}
}

// Normalize scales a vector to unit length in place. It returns false, and
// leaves the vector unchanged, if it has no length (zero, infinite or NaN).
func Normalize(v []float32) bool {
	var sq float64
	for _, x := range v {
		sq += float64(x) * float64(x)
	}
	if sq == 0 || math.IsNaN(sq) || math.IsInf(sq, 0) {
		return false
	}
	scale := 1 / math.Sqrt(sq)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}
