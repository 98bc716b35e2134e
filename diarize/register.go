package diarize

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otograph/otograph/spec"
)

// ErrRegister marks a voice register that cannot be read, or a voice that
// cannot be stored.
var ErrRegister = errors.New("voice register not accepted")

// Limits of a register.
const (
	maxRegister   = 64 << 20 // bytes per file
	maxVoiceName  = 100      // characters
	maxConsent    = 1000     // characters
	maxVoiceParts = 1000     // vectors per voice
)

// Voice is a person's voice, as described by a speaker model. It identifies the
// person: keep it like a password, and only with that person's consent.
type Voice struct {
	Name string `json:"name"`
	// Model is the SHA-256 of the speaker model's file: vectors of different
	// models cannot be compared.
	Model   string    `json:"model"`
	Added   time.Time `json:"added"`
	Consent string    `json:"consent"` // the person's agreement and its date
	// Vectors have unit length, one per recording.
	Vectors [][]float32 `json:"vectors"`
}

// Register is a list of named voices.
type Register struct {
	Voices []Voice `json:"voices"`
}

// ReadRegister reads a register written by Write. Errors wrap ErrRegister and
// name the voice and the field.
func ReadRegister(r io.Reader) (*Register, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxRegister+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxRegister {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrRegister, maxRegister)
	}
	var out, read Register
	if err := json.Unmarshal(raw, &read); err != nil {
		return nil, fmt.Errorf("%w: expected a JSON object with voices: %w", ErrRegister, err)
	}
	for _, v := range read.Voices {
		if err := out.Add(v); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// Write writes the register as JSON.
func (r *Register) Write(w io.Writer) error {
	out := Register{Voices: r.Voices}
	if out.Voices == nil {
		out.Voices = []Voice{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

// Add adds a voice. If the name already has vectors from the same model, the
// new ones are added to them, and the newer date and consent replace the older
// ones.
func (r *Register) Add(v Voice) error {
	bad := func(field, want string) error {
		return fmt.Errorf("%w: voice %q: %s must be %s", ErrRegister, spec.Shorten(v.Name), field, want)
	}
	v.Name = strings.TrimSpace(v.Name)
	switch {
	case v.Name == "" || utf8.RuneCountInString(v.Name) > maxVoiceName || !printable(v.Name):
		return bad("name", fmt.Sprintf("1 to %d printable characters", maxVoiceName))
	case v.Model == "":
		return bad("model", "the hash of the speaker model")
	case strings.TrimSpace(v.Consent) == "" || utf8.RuneCountInString(v.Consent) > maxConsent || !printable(v.Consent):
		return bad("consent", fmt.Sprintf("a note of 1 to %d printable characters: what the person agreed to", maxConsent))
	case len(v.Vectors) == 0:
		return bad("vectors", "at least one vector")
	}
	i := slices.IndexFunc(r.Voices, func(o Voice) bool { return o.Name == v.Name && o.Model == v.Model })
	dim := len(v.Vectors[0])
	if j := slices.IndexFunc(r.Voices, func(o Voice) bool { return o.Model == v.Model }); j >= 0 {
		dim = len(r.Voices[j].Vectors[0])
	}
	vectors := make([][]float32, len(v.Vectors))
	for k, x := range v.Vectors {
		vectors[k] = slices.Clone(x)
		if len(x) != dim || dim == 0 || !normalize(vectors[k]) {
			return bad("vectors", fmt.Sprintf("of %d finite numbers that are not all zero", dim))
		}
	}
	if i < 0 {
		v.Vectors = vectors
		r.Voices = append(r.Voices, v)
		i = len(r.Voices) - 1
	} else {
		r.Voices[i].Vectors = append(r.Voices[i].Vectors, vectors...)
		r.Voices[i].Added, r.Voices[i].Consent = v.Added, v.Consent
	}
	if len(r.Voices[i].Vectors) > maxVoiceParts {
		return bad("vectors", fmt.Sprintf("at most %d", maxVoiceParts))
	}
	return nil
}

// Remove removes a name, for every model. It reports whether the name existed.
func (r *Register) Remove(name string) bool {
	before := len(r.Voices)
	r.Voices = slices.DeleteFunc(r.Voices, func(v Voice) bool { return v.Name == name })
	return len(r.Voices) < before
}

// Match is the result of comparing a speaker with the known voices.
type Match struct {
	Name string // "" when in doubt
	// Cosine is the speaker's cosine with the nearest known voice, −1 without
	// one.
	Cosine float64
}

// A speaker is a known person if the distance (one minus the cosine) to that
// person's recordings is small compared with two others: the distance of these
// recordings from each other, and the distance of the speaker to the next voice.
// So the rule holds for any model's scale. Chosen on half of the people, with
// two models; docs/models.md#voices-known-by-name has the figures of the others.
const (
	// nearEnough is the greatest square of the distance, as a share of the
	// product of the two others.
	nearEnough = 0.75
	// leastOwn is the least distance of two recordings of a person, as a share of
	// the distance to the next voice. It stands for it if there is only one.
	leastOwn = 0.25
	// matchMargin is how much greater the cosine must be than that with the next
	// voice.
	matchMargin = 0.04
	// sameStranger is the cosine from which a stranger counts as the known
	// person.
	sameStranger = 0.97
)

// Matching holds the criteria for matching a speaker with a known voice; they
// depend on the speaker model.
type Matching struct {
	// Alike is the least cosine of a speaker and a matching voice.
	Alike float64
	// Strangers are unit vectors of unknown people; they are optional
	// (models.Model.Strangers).
	Strangers [][]float32
}

// NewMatching returns a Matching; strangers may have any length.
func NewMatching(alike float64, strangers [][]float32) Matching {
	m := Matching{Alike: alike}
	for _, s := range strangers {
		if v := slices.Clone(s); normalize(v) {
			m.Strangers = append(m.Strangers, v)
		}
	}
	return m
}

// stranger returns the speaker's cosine with the nearest stranger who does not
// count as the known person; −1 without any.
func (m Matching) stranger(speaker []float32, known person) float64 {
	nearest := -1.0
	for _, s := range m.Strangers {
		if len(s) != len(speaker) {
			continue
		}
		if c := float64(dot1(s, speaker)); c > nearest && float64(dot1(s, known.mean)) < sameStranger*known.length {
			nearest = c
		}
	}
	return nearest
}

// person is a known voice of one model.
type person struct {
	name       string
	recordings int
	mean       []float32 // of the recordings' vectors
	length     float64   // of the mean
}

// people returns the voices of a model.
func (r *Register) people(model string) (out []person) {
	for _, v := range r.Voices {
		if v.Model != model {
			continue
		}
		p := person{name: v.Name, recordings: len(v.Vectors), mean: make([]float32, len(v.Vectors[0]))}
		for _, x := range v.Vectors {
			for d, w := range x {
				p.mean[d] += w / float32(len(v.Vectors))
			}
		}
		if p.length = math.Sqrt(float64(dot1(p.mean, p.mean))); p.length > 0 {
			out = append(out, p)
		}
	}
	return out
}

// is reports whether a speaker with these mean cosines, to the person's
// recordings and to the next voice, is this person.
func (p person) is(cosine, next float64) bool {
	distance, others := 1-cosine, 1-next
	own := leastOwn * others
	if n := float64(p.recordings); n > 1 {
		// The mean's squared length is the mean of all n·n cosines; n of them
		// compare a recording with itself.
		own = max(own, 1-(n*p.length*p.length-1)/(n-1))
	}
	return cosine-next >= matchMargin && distance*distance <= nearEnough*own*others
}

// claim is a speaker who may be a person.
type claim struct {
	speaker, person int
	cosine          float64
}

// Identify names the speakers of one recording; model is the hash of the
// speaker model of their embeddings. Each voice names at most one speaker, its
// best match. A speaker gets no name if the nearest voice has too low a cosine,
// or is not much nearer than the second voice or a stranger.
func (r *Register) Identify(model string, speakers []Speaker, by Matching) []Match {
	people := r.people(model)
	defer func() {
		for _, p := range people {
			clear(p.mean)
		}
	}()
	out := make([]Match, len(speakers))
	var claims []claim
	for i, s := range speakers {
		out[i].Cosine = -1
		best, second, who := -1.0, -1.0, -1
		for j, p := range people {
			if len(p.mean) != len(s.Embedding) {
				continue
			}
			c := float64(dot1(s.Embedding, p.mean))
			if c > best {
				best, second, who = c, best, j
			} else {
				second = max(second, c)
			}
		}
		if who < 0 {
			continue
		}
		p := people[who]
		out[i].Cosine = best / p.length
		if out[i].Cosine >= by.Alike && p.is(best, max(second, by.stranger(s.Embedding, p))) {
			claims = append(claims, claim{i, who, best})
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(b.cosine, a.cosine) })
	taken := map[int]bool{}
	for _, c := range claims {
		if !taken[c.person] {
			taken[c.person] = true
			out[c.speaker].Name = people[c.person].name
		}
	}
	return out
}

// printable reports whether a text is valid UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}
