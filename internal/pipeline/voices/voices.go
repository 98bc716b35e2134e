// Package voices identifies the speakers of a result in a register of
// named voices.
package voices

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/embed"
	"github.com/otograph/otograph/internal/system/download"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// ErrNone is returned for a register without voices of the speaker model.
var ErrNone = errors.New("no voice of the speaker model")

// Match is an identified speaker of a result; it has a JSON form.
type Match struct {
	Speaker string  `json:"speaker"`
	Name    string  `json:"name"`
	Cosine  float64 `json:"cosine"` // cosine similarity of the two voices
}

// Voices is a register with the rule for comparing a speaker model's voices.
type Voices struct {
	register *diarize.Register
	model    string // hash
	by       diarize.Matching
}

// New returns the voices of a register for a speaker model whose file has the
// given hash. It returns ErrNone if the register has none of that model.
func New(register *diarize.Register, model *models.Model, hash string) (*Voices, error) {
	if !slices.ContainsFunc(register.Voices, func(v diarize.Voice) bool { return v.Model == hash }) {
		return nil, ErrNone
	}
	by, err := embed.Matching(model)
	if err != nil {
		return nil, err
	}
	return &Voices{register, hash, by}, nil
}

// ModelHash returns the SHA-256 of the speaker model's file.
func ModelHash(set *models.Set) (string, error) {
	m, err := set.Need(models.RoleEmbedder)
	if err != nil {
		return "", err
	}
	f := m.Main()
	if f.SHA256 != "" && f.Data != nil { // an embedded file has its declared hash
		return f.SHA256, nil
	}
	sum, _, err := download.HashFile(f.Path)
	if err != nil {
		return "", fmt.Errorf("%s model %s: %w", m.Role, m.Name, err)
	}
	return sum, nil
}

// Identify finds the speakers of a result in the register; nil voices identify
// no one.
func (v *Voices) Identify(res *spec.Result) []Match {
	if v == nil {
		return nil
	}
	speakers := make([]diarize.Speaker, len(res.SpeakerEmbeddings))
	for i, s := range res.SpeakerEmbeddings {
		speakers[i].Embedding = s.Embedding
	}
	var out []Match
	for i, m := range v.register.Identify(v.model, speakers, v.by) {
		if m.Name != "" {
			out = append(out, Match{res.SpeakerEmbeddings[i].SpeakerID, m.Name, math.Round(m.Cosine*1e4) / 1e4})
		}
	}
	return out
}

// Name returns a copy of the result with names in place of speakers.
func Name(res *spec.Result, known []Match) *spec.Result {
	if len(known) == 0 {
		return res
	}
	out := *res
	out.Segments, out.DiarizeSegments = slices.Clone(res.Segments), slices.Clone(res.DiarizeSegments)
	for _, k := range known {
		for i := range out.Segments {
			if out.Segments[i].Speaker == k.Speaker {
				out.Segments[i].Speaker = k.Name
			}
		}
		for i := range out.DiarizeSegments {
			if out.DiarizeSegments[i].Speaker == k.Speaker {
				out.DiarizeSegments[i].Speaker = k.Name
			}
		}
	}
	return &out
}
