package diarize

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unit returns a unit vector at an angle in degrees.
func unit(degrees float64) []float32 {
	return []float32{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
}

func ann() Voice {
	return Voice{Name: "Ann", Model: "m", Added: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Consent: "by mail, 2026-11-20", Vectors: [][]float32{unit(0)}}
}

func TestRegisterKeepsVoices(t *testing.T) {
	var r Register
	require.NoError(t, r.Add(ann()))
	more := ann()
	more.Vectors, more.Consent = [][]float32{{3, 3}}, "again"
	require.NoError(t, r.Add(more))
	bob := ann()
	bob.Name, bob.Vectors = "  Bob ", [][]float32{unit(90)}
	require.NoError(t, r.Add(bob))
	require.Len(t, r.Voices, 2)
	assert.Len(t, r.Voices[0].Vectors, 2)
	assert.InDelta(t, math.Sqrt(0.5), r.Voices[0].Vectors[1][0], 1e-6, "vectors have unit length")
	assert.Equal(t, "again", r.Voices[0].Consent)
	assert.Equal(t, "Bob", r.Voices[1].Name)

	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	again, err := ReadRegister(&file)
	require.NoError(t, err)
	assert.Equal(t, &r, again)

	assert.True(t, r.Remove("Ann"))
	assert.False(t, r.Remove("Ann"))
	file.Reset()
	require.NoError(t, r.Write(&file))
	assert.NotContains(t, file.String(), "Ann", "a removed voice leaves no trace")
}

func TestRegisterRejects(t *testing.T) {
	for want, change := range map[string]func(*Voice){
		"name must be 1 to 100 printable characters": func(v *Voice) { v.Name = "A\x1b[31m" },
		"model must be":                                        func(v *Voice) { v.Model = "" },
		"consent must be a note":                               func(v *Voice) { v.Consent = " " },
		"vectors must be at least one vector":                  func(v *Voice) { v.Vectors = nil },
		"vectors must be of 2 finite numbers that are not all": func(v *Voice) { v.Vectors = append(v.Vectors, []float32{1, 2, 3}) },
		"finite numbers that are not all zero":                 func(v *Voice) { v.Vectors[0] = []float32{0, 0} },
		`voice "Ann": vectors must be of 2 finite numbers`:     func(v *Voice) { v.Vectors[0] = []float32{float32(math.NaN()), 1} },
		"name must be 1 to 100 printable characters ":          func(v *Voice) { v.Name = strings.Repeat("x", 101) },
	} {
		v := ann()
		change(&v)
		err := (&Register{}).Add(v)
		require.ErrorIs(t, err, ErrRegister)
		assert.ErrorContains(t, err, strings.TrimSpace(want))
	}
	_, err := ReadRegister(strings.NewReader("no JSON"))
	assert.ErrorIs(t, err, ErrRegister)
}

func TestIdentify(t *testing.T) {
	r := Register{}
	for name, degrees := range map[string]float64{"Ann": 0, "Bob": 90} {
		v := ann()
		v.Name, v.Vectors = name, [][]float32{unit(degrees)}
		require.NoError(t, r.Add(v))
	}
	speakers := []Speaker{{Embedding: unit(25)}, {Embedding: unit(5)}, {Embedding: unit(80)}, {Embedding: unit(200)}}
	names := func(matches []Match) (out []string) {
		for _, m := range matches {
			out = append(out, m.Name)
		}
		return out
	}
	matches := r.Identify("m", speakers, Matching{Alike: 0.8})
	assert.Equal(t, []string{"", "Ann", "Bob", ""}, names(matches), "a voice names the speaker that fits it best")
	assert.InDelta(t, math.Cos(5*math.Pi/180), matches[1].Cosine, 1e-6)
	assert.Equal(t, []string{"", "", "", ""}, names(r.Identify("another model", speakers, Matching{Alike: 0.8})))
	assert.Equal(t, []string{""}, names(r.Identify("m", []Speaker{{Embedding: unit(46)}}, Matching{Alike: 0.5})), "no name between two voices")
	assert.Equal(t, []string{""}, names(r.Identify("m", []Speaker{{Embedding: []float32{1, 0, 0}}}, Matching{Alike: 0.5})))
}

func TestStrangers(t *testing.T) {
	r := Register{}
	v := ann()
	v.Vectors = [][]float32{unit(0)}
	require.NoError(t, r.Add(v))
	for name, c := range map[string]struct {
		speaker   float64
		strangers []float64
		want      string
	}{
		"no strangers":               {20, nil, "Ann"},
		"far from it":                {20, []float64{90, 180}, "Ann"},
		"nearer than Ann":            {20, []float64{90, 30}, ""},
		"as near as Ann":             {20, []float64{41}, ""},
		"not as near":                {20, []float64{60}, "Ann"},
		"Ann herself is no stranger": {20, []float64{10}, "Ann"},
		"Ann herself, and another nearer than she": {20, []float64{10, 30}, ""},
	} {
		var strangers [][]float32
		for _, degrees := range c.strangers {
			long := unit(degrees)
			for d := range long {
				long[d] *= 127
			}
			strangers = append(strangers, long)
		}
		strangers = append(strangers, []float32{1, 2, 3}, []float32{0, 0})
		got := r.Identify("m", []Speaker{{Embedding: unit(c.speaker)}}, NewMatching(0.8, strangers))
		assert.Equal(t, c.want, got[0].Name, name)
	}
}

// The least distance that still counts depends on the distances between other
// voices and between a person's recordings, not on the model's scale.
func TestIdentifyWithoutScale(t *testing.T) {
	for name, c := range map[string]struct {
		recordings []float64 // Ann's, as shares of the distance to Bob
		speaker    float64
		want       string
	}{
		"one recording":                          {[]float64{0}, 0.2, "Ann"},
		"one recording, a stranger":              {[]float64{0}, 0.4, ""},
		"recordings that differ":                 {[]float64{-0.3, 0.3}, 0.4, "Ann"},
		"copies are like one recording":          {[]float64{0, 0}, 0.2, "Ann"},
		"copies say nothing of other recordings": {[]float64{0, 0}, 0.4, ""},
	} {
		for _, scale := range []float64{90, 60} {
			r := Register{}
			v := ann()
			v.Vectors = nil
			for _, x := range c.recordings {
				v.Vectors = append(v.Vectors, unit(x*scale))
			}
			require.NoError(t, r.Add(v))
			v.Name, v.Vectors = "Bob", [][]float32{unit(scale)}
			require.NoError(t, r.Add(v))
			got := r.Identify("m", []Speaker{{Embedding: unit(c.speaker * scale)}}, Matching{Alike: 0.5})
			assert.Equal(t, c.want, got[0].Name, "%s, scale %v", name, scale)
		}
	}
}

func FuzzReadRegister(f *testing.F) {
	var file bytes.Buffer
	r := Register{Voices: []Voice{ann()}}
	_ = r.Write(&file)
	f.Add(file.Bytes())
	f.Add([]byte(`{"voices":[{"name":"x","vectors":[[1e39]]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadRegister(bytes.NewReader(data))
		if err != nil {
			return
		}
		v := make([]float32, 8)
		for i := range v {
			v[i] = rand.Float32()
		}
		r.Identify("m", []Speaker{{Embedding: v}}, Matching{Alike: 0.5})
		var out bytes.Buffer
		require.NoError(t, r.Write(&out))
		again, err := ReadRegister(&out)
		require.NoError(t, err)
		assert.Len(t, again.Voices, len(r.Voices))
	})
}
