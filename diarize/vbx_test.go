package diarize

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
)

// vbxCase is testdata/vbx.json, which tools/ref/vbx.py writes.
type vbxCase struct {
	PLDA      json.RawMessage
	Vectors   []float32
	Projected []float64
	Clusters  []int
	Runs      []struct {
		Fa, Fb    float64
		Gamma, Pi []float64
	}
}

func readVBxCase(t *testing.T) (c vbxCase, p *PLDA, x matrix) {
	t.Helper()
	data, err := os.ReadFile("testdata/vbx.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &c))
	p, err = ParsePLDA(c.PLDA, 8)
	require.NoError(t, err)
	return c, p, matrix{c.Vectors, len(c.Vectors) / 8, 8}
}

// TestVBxEqualsReference: the projection and the speakers are numpy's.
func TestVBxEqualsReference(t *testing.T) {
	c, p, x := readVBxCase(t)
	z := p.project(x)
	assert.InDeltaSlice(t, c.Projected, z.RawMatrix().Data, 1e-9)
	require.Len(t, c.Runs, 3)
	for _, run := range c.Runs {
		m := newMixture(c.Clusters, 5, run.Fa, run.Fb)
		m.fit(z, p.variance)
		assert.InDeltaSlice(t, run.Gamma, m.share.RawMatrix().Data, 1e-9, "Fa %g, Fb %g", run.Fa, run.Fb)
		assert.InDeltaSlice(t, run.Pi, m.weights, 1e-9, "Fa %g, Fb %g", run.Fa, run.Fb)
	}
}

// TestDiarizeUsesPLDA: in the space of this analysis all voices are one, so VBx
// leaves one voice; a given number is kept.
func TestDiarizeUsesPLDA(t *testing.T) {
	truth := []utterance{{span(0, 8), 0}, {span(8, 14), 1}}
	e := newMadeUp(2, truth, 0.5)
	speakers := func(number int) int {
		opt := DefaultOptions()
		opt.NumSpeakers = number
		r, err := Diarize(t.Context(), e, silence(14), []audio.Span{span(0, 14)}, opt)
		require.NoError(t, err)
		return len(r.Speakers)
	}
	require.Equal(t, 2, speakers(0))
	lda := make([]float64, madeUpDim)
	lda[0] = 1
	data, err := json.Marshal(map[string][]float64{
		"mean1": make([]float64, madeUpDim), "lda": lda, "mean2": {0}, "plda_mu": {0}, "plda_tr": {1}, "plda_psi": {0},
	})
	require.NoError(t, err)
	e.plda, err = ParsePLDA(data, madeUpDim)
	require.NoError(t, err)
	assert.Equal(t, 1, speakers(0))
	assert.Equal(t, 2, speakers(2))
}

func TestParsePLDARefusals(t *testing.T) {
	c, _, _ := readVBxCase(t)
	var good map[string][]float64
	require.NoError(t, json.Unmarshal(c.PLDA, &good))
	for field, says := range map[string]string{"mean1": "from 8 to 5 numbers: mean1: expected 8 numbers, found 7", "lda": "lda: expected 40 numbers, found 39", "plda_tr": "plda_tr: expected 25 numbers, found 24"} {
		bad := map[string][]float64{}
		for name, values := range good {
			bad[name] = values
		}
		bad[field] = bad[field][1:]
		data, err := json.Marshal(bad)
		require.NoError(t, err)
		_, err = ParsePLDA(data, 8)
		assert.ErrorContains(t, err, says, field)
	}
	negative := strings.Replace(string(c.PLDA), `"plda_psi":[`, `"plda_psi":[-`, 1)
	_, err := ParsePLDA([]byte(negative), 8)
	assert.ErrorContains(t, err, "plda_psi: expected variances of 0 or more, found -")
	for _, data := range []string{"", "[]", "{}"} {
		_, err := ParsePLDA([]byte(data), 8)
		assert.ErrorContains(t, err, "PLDA", "%q", data)
	}
}
