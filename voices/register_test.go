package voices

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// model is the hash of a speaker model.
var model = strings.Repeat("0f", 32)

// unit returns a unit vector at an angle in degrees.
func unit(degrees float64) []float32 {
	return []float32{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
}

func ann() Voice {
	return Voice{Name: "Ann", Model: model, Added: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Consent: "by mail, 2026-11-20", Vectors: [][]float32{unit(0)}}
}

// add adds a voice with recordings at the given angles.
func add(t *testing.T, r *Register, name string, degrees ...float64) {
	t.Helper()
	v := ann()
	v.Name, v.Vectors = name, nil
	for _, d := range degrees {
		v.Vectors = append(v.Vectors, unit(d))
	}
	_, err := r.Add(v)
	require.NoError(t, err)
}

func TestRegisterKeepsVoices(t *testing.T) {
	var r Register
	add(t, &r, "Ann", 0)
	more := ann()
	more.Vectors, more.Consent = [][]float32{{3, 3}}, "again"
	for range 2 { // the same vectors are added once
		more.Name = strings.ToUpper(more.Name) // of the same person
		entry, err := r.Add(more)
		require.NoError(t, err)
		assert.Len(t, entry.Vectors, 2)
	}
	add(t, &r, "  Bob ", 90)
	require.Len(t, r.Voices, 2)
	assert.InDelta(t, math.Sqrt(0.5), r.Voices[0].Vectors[1][0], 1e-6, "vectors have unit length")
	assert.Equal(t, []string{"Ann", "again"}, []string{r.Voices[0].Name, r.Voices[0].Consent})
	assert.Equal(t, "Bob", r.Voices[1].Name)
	assert.Equal(t, []bool{true, false}, []bool{r.Has(model), r.Has("another")})

	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	again, err := Read(&file)
	require.NoError(t, err)
	assert.Equal(t, &r, again)

	assert.True(t, r.Remove("ann"))
	assert.False(t, r.Remove("Ann"))
	add(t, &r, "Zoe\u0308", 30) // the same letter in two forms
	add(t, &r, "ZO\u00cb", 60)
	require.Len(t, r.Voices, 2)
	assert.Equal(t, "Zo\u00eb", r.Voices[1].Name)
	assert.True(t, r.Remove(" zoe\u0308"))
	file.Reset()
	require.NoError(t, r.Write(&file))
	assert.NotContains(t, file.String(), "Ann", "a removed voice leaves no trace")
	bob := r.Voices[0].Vectors[0]
	r.Clear()
	assert.Equal(t, []float32{0, 0}, bob)
}

// TestRefusedVoices: each refusal names the field, the expected value and the
// received one, and leaves the register unchanged.
func TestRefusedVoices(t *testing.T) {
	for want, change := range map[string]func(*Voice){
		"name: must be 1 to 64 printable characters":                func(v *Voice) { v.Name = "A\x1b[31m" },
		"name: must be 1 to 64 printable characters ":               func(v *Voice) { v.Name = strings.Repeat("ä", 65) },
		" name: must be 1 to 64 printable characters":               func(v *Voice) { v.Name = "\u200b\u2060" },
		`name: "Speaker_3" is reserved for`:                         func(v *Voice) { v.Name = "Speaker_3" },
		"model: must be the SHA-256 of the speaker model's file":    func(v *Voice) { v.Model = "" },
		`64 of the digits 0-9 and a-f, not "ABAB`:                   func(v *Voice) { v.Model = strings.Repeat("AB", 32) },
		"consent: must be a note of 1 to 1000 printable":            func(v *Voice) { v.Consent = " " },
		"vectors: must be at least one":                             func(v *Voice) { v.Vectors = nil },
		"vectors: number 2 must have 1 to 1024 numbers, found 0":    func(v *Voice) { v.Vectors = append(v.Vectors, nil) },
		"vectors: number 1 must have 1 to 1024 numbers, found 1025": func(v *Voice) { v.Vectors[0] = make([]float32, 1025) },
		"vectors: those of this model have 2 numbers, found 3":      func(v *Voice) { v.Vectors = [][]float32{{1, 2, 3}} },
		"vectors: must all have 2 finite numbers":                   func(v *Voice) { v.Vectors = append(v.Vectors, []float32{1, 2, 3}) },
		"denied: must all have 2 finite numbers":                    func(v *Voice) { v.Denied = [][]float32{{1}} },
		"finite numbers that are not all zero":                      func(v *Voice) { v.Vectors[0] = []float32{0, 0} },
		"vectors: must all have 2 finite numbers ":                  func(v *Voice) { v.Vectors[0] = []float32{float32(math.NaN()), 1} },
		"vectors: the voice would have 1001, and the limit is 1000": func(v *Voice) {
			for i := range maxVectors {
				v.Vectors = append(v.Vectors, unit(1+float64(i)/10))
			}
		},
	} {
		var r Register
		add(t, &r, "Ann", 0)
		v := ann()
		change(&v)
		_, err := r.Add(v)
		require.ErrorIs(t, err, ErrVoice)
		assert.ErrorContains(t, err, strings.TrimSpace(want))
		assert.Equal(t, []Voice{ann()}, r.Voices)
	}
	_, err := Read(strings.NewReader("no JSON"))
	assert.ErrorIs(t, err, ErrVoice)
	_, err = Read(strings.NewReader(`{"voices":[{"name":"Ann"}]}`))
	assert.EqualError(t, err, `voice "Ann": voice not accepted: consent: must be a note of 1 to 1000 printable characters: what the person agreed to, and when`)
}

func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	r := Register{Voices: []Voice{ann()}}
	_ = r.Write(&file)
	f.Add(file.Bytes())
	f.Add([]byte(`{"voices":[{"name":"x","vectors":[[1e39]]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		v := make([]float32, 8)
		for i := range v {
			v[i] = rand.Float32()
		}
		r.Identify(model, []spec.SpeakerEmbedding{{Embedding: v}}, 0.5)
		var out bytes.Buffer
		require.NoError(t, r.Write(&out))
		again, err := Read(&out)
		require.NoError(t, err)
		assert.Len(t, again.Voices, len(r.Voices))
	})
}
