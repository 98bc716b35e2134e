package voices

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/spec"
)

// speakers returns speakers A, B, … with vectors at the given angles.
func speakers(degrees ...float64) (out []spec.SpeakerEmbedding) {
	for i, d := range degrees {
		out = append(out, spec.SpeakerEmbedding{SpeakerID: string(rune('A' + i)), Embedding: unit(d)})
	}
	return out
}

func TestIdentify(t *testing.T) {
	var r Register
	add(t, &r, "Ann", 0)
	add(t, &r, "Bob", 90)
	assert.Equal(t, []Match{{"B", "Ann", 0.9962}, {"C", "Bob", 0.9848}}, r.Identify(model, speakers(25, 5, 80, 200), 0.8), "a voice names its best match")
	assert.Empty(t, r.Identify("another model", speakers(0), 0.8))
	assert.Empty(t, r.Identify(model, speakers(46), 0.5), "between two voices")
	assert.Empty(t, r.Identify(model, []spec.SpeakerEmbedding{{Embedding: []float32{1, 0, 0}}}, 0.5))
}

// TestIdentifyAtAnyScale: the least distance that still counts depends on the
// distances between other voices and between a person's recordings, not on the
// model's scale.
func TestIdentifyAtAnyScale(t *testing.T) {
	for name, c := range map[string]struct {
		recordings []float64 // Ann's, as shares of the distance to Bob
		speaker    float64
		identified bool
	}{
		"one recording":                          {[]float64{0}, 0.2, true},
		"one recording, a stranger":              {[]float64{0}, 0.4, false},
		"recordings that differ":                 {[]float64{-0.3, 0.3}, 0.4, true},
		"copies are like one recording":          {[]float64{0, 0}, 0.2, true},
		"copies say nothing of other recordings": {[]float64{0, 0}, 0.4, false},
	} {
		for _, scale := range []float64{90, 60} {
			var r Register
			var degrees []float64
			for _, x := range c.recordings {
				degrees = append(degrees, x*scale)
			}
			add(t, &r, "Ann", degrees...)
			add(t, &r, "Bob", scale)
			assert.Equal(t, c.identified, len(r.Identify(model, speakers(c.speaker*scale), 0.5)) == 1, "%s, scale %v", name, scale)
		}
	}
}

func TestRename(t *testing.T) {
	res := &spec.Result{Segments: []spec.Segment{{Speaker: "A"}, {Speaker: "B"}, {}}, DiarizeSegments: []spec.Turn{{Speaker: "B"}}}
	named := Rename(res, []Match{{Speaker: "B", Name: "Bob"}})
	assert.Equal(t, []spec.Segment{{Speaker: "A"}, {Speaker: "Bob"}, {}}, named.Segments)
	assert.Equal(t, []spec.Turn{{Speaker: "Bob"}}, named.DiarizeSegments)
	assert.Equal(t, "B", res.Segments[1].Speaker, "the result itself is unchanged")
}
