package voices

import (
	"cmp"
	"math"
	"slices"

	"github.com/otograph/otograph/spec"
)

// Match is a speaker who is, or may be, a known person.
type Match struct {
	Speaker string  `json:"speaker"` // id of the speaker in the result
	Name    string  `json:"name"`
	Cosine  float64 `json:"cosine"` // with the known voice, rounded to 4 digits
	// Probability, 0 to 1, that the speaker is this person, if every second
	// speaker is in the register; rounded to 2 digits.
	Probability float64 `json:"probability"`
	// Suggested reports that the name is too uncertain to be given to the
	// speaker, or that another speaker, who is as likely this person, has it.
	Suggested bool `json:"suggested,omitempty"`
}

// A speaker is a known person if the distance (one minus the cosine) to that
// person's voice is small compared with the distance to the next voice and with
// the usual distance of one voice. The limits and the probability were fitted on
// half of the people; docs/measurements/known-voices.md has the figures of the
// others.
const (
	nextShare   = 0.55 // largest share of the distance to the next voice
	nextPart    = 0.35 // or this share plus alikePart of a voice's usual distance
	alikePart   = 0.22
	matchMargin = 0.04 // least difference from the cosine with the next voice
	// The next voice is nearer among more known voices: the limit is multiplied
	// by manyKnown + tenKnown · log10(their number), at least by fewKnown.
	manyKnown = 0.93
	tenKnown  = 0.15
	fewKnown  = 1.04

	// The log odds of the probability are oddsOffset − oddsSlope · distance/limit.
	oddsOffset = 10.9
	oddsSlope  = 9.4
	// leastGiven is the probability at the limit.
	leastGiven     = 0.8175
	leastSuggested = 0.2
)

type person struct {
	name string
	mean []float32   // of the recordings' vectors, unit length
	not  [][]float32 // Voice.Denied
}

// people returns the voices of a model.
func (r *Register) people(model string) (out []person) {
	for _, v := range r.Voices {
		if v.Model != model {
			continue
		}
		p := person{v.Name, make([]float32, len(v.Vectors[0])), v.Denied}
		for _, x := range v.Vectors {
			for d, w := range x {
				p.mean[d] += w
			}
		}
		if Normalize(p.mean) {
			out = append(out, p)
		}
	}
	return out
}

// probability returns the probability that a speaker with a cosine to a voice,
// and another one to the next of the known voices (−1 without one), is this person.
func probability(cosine, next, alike float64, known int) float64 {
	others := 1 - next
	limit := min(nextShare*others, nextPart*others+alikePart*(1-alike), 1-alike) * max(fewKnown, manyKnown+tenKnown*math.Log10(float64(known)))
	p := 1 / (1 + math.Exp(oddsSlope*(1-cosine)/max(limit, 1e-6)-oddsOffset))
	if cosine-next < matchMargin {
		p = min(p, 0.5)
	}
	return p
}

// claim is a speaker who may be a person.
type claim struct {
	speaker, person     int
	cosine, probability float64
	given               bool
}

// Identify returns the speakers of one recording who are in the register, and
// those who may be (Match.Suggested); model is the hash of the speaker model of
// their embeddings, and alike the least usual cosine of a person's recordings.
// Each voice names at most one speaker, its best match.
func (r *Register) Identify(model string, speakers []spec.SpeakerEmbedding, alike float64) []Match {
	people := r.people(model)
	defer func() {
		for _, p := range people {
			clear(p.mean)
		}
	}()
	var claims []claim
	for i, s := range speakers {
		best, second, who := -1.0, -1.0, -1
		for j, p := range people {
			if len(p.mean) != len(s.Embedding) {
				continue
			}
			c := float64(dot(s.Embedding, p.mean))
			denied := func(x []float32) bool { return float64(dot(s.Embedding, x)) > c }
			if c > best && !slices.ContainsFunc(p.not, denied) {
				best, second, who = c, max(best, second), j
			} else {
				second = max(second, c)
			}
		}
		if who < 0 {
			continue
		}
		if p := probability(best, second, alike, len(people)); p >= leastSuggested {
			claims = append(claims, claim{speaker: i, person: who, cosine: best, probability: p})
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(b.cosine, a.cosine) })
	named := map[int]bool{}
	var kept []claim // without unlikely claims on a person who has a likely speaker
	for _, c := range claims {
		likely := c.probability >= leastGiven
		if c.given = likely && !named[c.person]; likely || !named[c.person] {
			kept = append(kept, c)
		}
		named[c.person] = named[c.person] || likely
	}
	claims = kept
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.speaker, b.speaker) })
	var out []Match
	for _, c := range claims {
		out = append(out, Match{speakers[c.speaker].SpeakerID, people[c.person].name, rounded(c.cosine, 1e4), rounded(c.probability, 1e2), !c.given})
	}
	return out
}

func rounded(x, units float64) float64 { return math.Round(x*units) / units }

// dot returns the dot product of two vectors of the same length.
func dot(a, b []float32) (sum float32) {
	for k, x := range a {
		sum += x * b[k]
	}
	return sum
}

// Names returns the names that matches give to speakers, without suggestions.
func Names(matches []Match) map[string]string {
	names := map[string]string{}
	for _, m := range matches {
		if !m.Suggested {
			names[m.Speaker] = m.Name
		}
	}
	return names
}

// Rename returns a copy of a result with the names that matches give.
func Rename(res *spec.Result, matches []Match) *spec.Result {
	names := Names(matches)
	if len(names) == 0 {
		return res
	}
	out := *res
	out.Segments, out.DiarizeSegments = slices.Clone(res.Segments), slices.Clone(res.DiarizeSegments)
	for i, s := range out.Segments {
		out.Segments[i].Speaker = cmp.Or(names[s.Speaker], s.Speaker)
	}
	for i, s := range out.DiarizeSegments {
		out.DiarizeSegments[i].Speaker = cmp.Or(names[s.Speaker], s.Speaker)
	}
	return &out
}
