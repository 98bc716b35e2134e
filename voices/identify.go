package voices

import (
	"cmp"
	"math"
	"slices"

	"github.com/otograph/otograph/spec"
)

// Match is an identified speaker.
type Match struct {
	Speaker string  `json:"speaker"` // id of the speaker in the result
	Name    string  `json:"name"`
	Cosine  float64 `json:"cosine"` // with the known voice, rounded to 4 digits
}

// A speaker is a known person if the distance (one minus the cosine) to that
// person's recordings is small compared with two others: the distance of these
// recordings from each other, and the distance of the speaker to the next voice.
// So the rule holds for any model's scale. Chosen on half of the people, with
// two models; docs/measurements/known-voices.md has the figures of the others.
const (
	// nearEnough is the square of the distance, over the others' product.
	nearEnough = 0.75
	// leastOwn is a floor for the distance of a person's recordings, as a share
	// of the distance to the next voice, and its value for a single one.
	leastOwn = 0.25
	// matchMargin is the least lead of the cosine over that with the next voice.
	matchMargin = 0.04
)

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
		if p.length = math.Sqrt(float64(dot(p.mean, p.mean))); p.length > 0 {
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

// Identify returns the speakers of one recording who are in the register; model
// is the hash of the speaker model of their embeddings. Each voice names at most
// one speaker, its best match. A speaker gets no name if the cosine with the
// nearest voice is below alike, or if it is not much nearer than the second.
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
		if best/p.length >= alike && p.is(best, second) {
			claims = append(claims, claim{i, who, best})
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(b.cosine, a.cosine) })
	claims = firsts(claims)
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.speaker, b.speaker) })
	var out []Match
	for _, c := range claims {
		p := people[c.person]
		out = append(out, Match{speakers[c.speaker].SpeakerID, p.name, math.Round(c.cosine/p.length*1e4) / 1e4})
	}
	return out
}

// firsts returns the first claim on each person.
func firsts(claims []claim) (out []claim) {
	for _, c := range claims {
		if !slices.ContainsFunc(out, func(o claim) bool { return o.person == c.person }) {
			out = append(out, c)
		}
	}
	return out
}

// dot returns the dot product of two vectors of the same length.
func dot(a, b []float32) (sum float32) {
	for k, x := range a {
		sum += x * b[k]
	}
	return sum
}

// Rename returns a copy of a result with the matches' names for speakers.
func Rename(res *spec.Result, matches []Match) *spec.Result {
	if len(matches) == 0 {
		return res
	}
	names := map[string]string{}
	for _, m := range matches {
		names[m.Speaker] = m.Name
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
