package voices

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	matches := r.Identify(model, speakers(25, 5, 80, 200), 0.8)
	assert.Equal(t, []Match{{"A", "Ann", 0.9063, 1, true}, {"B", "Ann", 0.9962, 1, false}, {"C", "Bob", 0.9848, 1, false}}, matches, "a voice names its best match")
	assert.Equal(t, map[string]string{"B": "Ann", "C": "Bob"}, Names(matches), "and no suggestion")
	assert.Equal(t, []Match{{"B", "Ann", 1, 1, false}}, r.Identify(model, speakers(39, 0), 0.5), "a person who is another speaker")
	assert.Empty(t, r.Identify("another model", speakers(0), 0.8))
	assert.Equal(t, []Match{{"A", "Ann", 0.7771, 0.73, true}}, r.Identify(model, speakers(39), 0.5), "less likely, so suggested")
	assert.Empty(t, r.Identify(model, speakers(46), 0.5), "between two voices")
	add(t, &r, "Bob again", 91)
	assert.Equal(t, []Match{{"A", "Bob", 1, 0.5, true}}, r.Identify(model, speakers(90), 0.5), "of two equal voices")
	assert.Empty(t, r.Identify(model, []spec.SpeakerEmbedding{{Embedding: []float32{1, 0, 0}}}, 0.5))
}

// TestDeniedVoiceGetsNoName: a speaker who is more like a denied vector gets no
// name and no suggestion; the person and everyone else still do.
func TestDeniedVoiceGetsNoName(t *testing.T) {
	var r Register
	add(t, &r, "Ann", 0)
	add(t, &r, "Bob", 120)
	named := func(degrees ...float64) map[string]string {
		names := map[string]string{}
		for _, m := range r.Identify(model, speakers(degrees...), 0.5) {
			names[m.Speaker] = m.Name
		}
		return names
	}
	require.Equal(t, map[string]string{"A": "Ann", "B": "Ann", "C": "Bob"}, named(30, -10, 115))
	deny := func(name string, degrees ...float64) {
		for i, v := range r.Voices {
			if v.Name == name {
				for _, d := range degrees {
					v.Denied = append(v.Denied, unit(d))
				}
				entry, err := r.Add(v)
				require.NoError(t, err)
				assert.Same(t, &r.Voices[i], entry)
			}
		}
	}
	deny("Ann", 30, 0)
	assert.Equal(t, [][]float32{unit(30)}, r.Voices[0].Denied, "without her own recording")
	assert.Equal(t, map[string]string{"B": "Ann", "C": "Bob"}, named(30, -10, 115))
	assert.Empty(t, named(20), "more like the denied one")
	assert.Len(t, named(10), 1)
	deny("Bob", 5)
	assert.Len(t, named(4), 1, "what is denied of Bob may be Ann")
	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	again, err := Read(&file)
	require.NoError(t, err)
	assert.Equal(t, &r, again)
	add(t, &r, "Ann", 30)
	assert.Empty(t, r.Voices[0].Denied, "it was Ann after all")
	denied := r.Voices[1].Denied[0]
	r.Clear()
	assert.Equal(t, []float32{0, 0}, denied)
}

// TestIdentifyAtAnyScale: the greatest distance that still counts depends on the
// distance to the next voice, not on the model's scale, and on a person's
// recordings together.
func TestIdentifyAtAnyScale(t *testing.T) {
	for name, c := range map[string]struct {
		recordings []float64 // Ann's, as shares of the distance to Bob
		speaker    float64
		identified bool
	}{
		"one recording":             {[]float64{0}, 0.4, true},
		"one recording, a stranger": {[]float64{0}, 0.45, false},
		"recordings that differ":    {[]float64{-0.3, 0.3}, 0.4, true},
		"recordings nearer":         {[]float64{0, 0.2}, 0.45, true},
	} {
		for _, scale := range []float64{90, 60} {
			var r Register
			var degrees []float64
			for _, x := range c.recordings {
				degrees = append(degrees, x*scale)
			}
			add(t, &r, "Ann", degrees...)
			add(t, &r, "Bob", scale)
			assert.Equal(t, c.identified, len(Names(r.Identify(model, speakers(c.speaker*scale), 0.5))) == 1, "%s, scale %v", name, scale)
		}
	}
}

// TestManyKnownVoices: among 40 known voices, none of them near, the distance that
// still counts is greater by an eighth than among two.
func TestManyKnownVoices(t *testing.T) {
	for count, want := range map[int]string{2: "", 40: "Ann"} {
		var r Register
		add(t, &r, "Ann", 0)
		for i := range count - 1 {
			add(t, &r, "other "+strconv.Itoa(i), 90+float64(i)/10)
		}
		assert.Equal(t, want, Names(r.Identify(model, speakers(39), 0.5))["A"], "%d known", count)
	}
}

func TestRename(t *testing.T) {
	res := &spec.Result{Segments: []spec.Segment{{Speaker: "A"}, {Speaker: "B"}, {}}, DiarizeSegments: []spec.Turn{{Speaker: "B"}}}
	named := Rename(res, []Match{{Speaker: "B", Name: "Bob"}, {Speaker: "A", Name: "Ann", Suggested: true}})
	assert.Equal(t, []spec.Segment{{Speaker: "A"}, {Speaker: "Bob"}, {}}, named.Segments)
	assert.Equal(t, []spec.Turn{{Speaker: "Bob"}}, named.DiarizeSegments)
	assert.Equal(t, "B", res.Segments[1].Speaker, "the result itself is unchanged")
}
