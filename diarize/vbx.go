package diarize

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// VBx (F. Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx)
// in speaker diarization", 2022) as in pyannote's community-1: a mixture of
// speakers, without transition probabilities. The scales were chosen on 20
// conversations of people; community-1's own (0.07 and 0.8, for windows of 10
// s) make one voice of most conversations. See docs/measurements/speakers.md.
const (
	vbxAcoustic  = 0.15 // scale of a window's log likelihood (Fa)
	vbxSpeakers  = 0.3  // scale of the divergence of speakers from their prior (Fb)
	vbxSteps     = 20
	vbxGain      = 1e-4 // of the bound, below which the steps end
	vbxSmoothing = 7.0  // initial log odds of a window's cluster
	vbxEpsilon   = 1e-8 // added to a speaker's probability
)

// regroup returns the most probable voice of each vector, numbered by first
// appearance, and the number of voices, at most k, that VBx finds from the
// vectors' clusters 0 … k−1.
func (p *PLDA) regroup(x matrix, clusters []int, k int) (labels []int, n int) {
	m := newMixture(clusters, k, vbxAcoustic, vbxSpeakers)
	m.fit(p.project(x), p.variance)
	labels = make([]int, x.n)
	for i := range labels {
		labels[i] = floats.MaxIdx(m.share.RawRowView(i))
	}
	labels = byFirstAppearance(labels)
	return labels, distinct(labels)
}

// mixture is a variational mixture of speakers in the space of a PLDA.
type mixture struct {
	acoustic, speakers float64 // Fa and Fb

	share   *mat.Dense // [window × speaker]: probability of the speaker
	weights []float64  // per speaker: probability in the recording
}

// newMixture returns the mixture that begins with the given clusters.
func newMixture(labels []int, k int, acoustic, speakers float64) *mixture {
	m := &mixture{acoustic: acoustic, speakers: speakers, share: mat.NewDense(len(labels), k, nil), weights: make([]float64, k)}
	own := math.Exp(vbxSmoothing)
	other := 1 / (own + float64(k-1))
	for i, l := range labels {
		floats.AddConst(other, m.share.RawRowView(i))
		m.share.Set(i, l, own*other)
	}
	floats.AddConst(1/float64(k), m.weights)
	return m
}

// fit finds the speakers of windows in the space of a PLDA, whose variances
// between voices are phi.
func (m *mixture) fit(x *mat.Dense, phi []float64) {
	n, d := x.Dims()
	rho := mat.NewDense(n, d, nil)
	rho.Apply(func(_, j int, v float64) float64 { return v * math.Sqrt(phi[j]) }, x)
	constant := make([]float64, n) // the part of a window's log likelihood that all speakers share
	for i := range constant {
		row := x.RawRowView(i)
		constant[i] = -(floats.Dot(row, row) + float64(d)*math.Log(2*math.Pi)) / 2
	}
	var alpha, like mat.Dense
	for step, last := 0, 0.0; step < vbxSteps; step++ {
		alpha.Mul(m.share.T(), rho)
		offset, bound := m.posterior(&alpha, phi)
		like.Mul(rho, alpha.T())
		for i := range n {
			row := m.share.RawRowView(i)
			for s := range row {
				row[s] = m.acoustic*(like.At(i, s)-offset[s]+constant[i]) + math.Log(m.weights[s]+vbxEpsilon)
			}
			all := floats.LogSumExp(row)
			bound += all
			for s, v := range row {
				row[s] = math.Exp(v - all)
			}
		}
		for s := range m.weights {
			m.weights[s] = mat.Sum(m.share.ColView(s)) / float64(n)
		}
		if step > 0 && bound-last < vbxGain {
			break
		}
		last = bound
	}
}

// posterior turns the speakers' sums of windows into their means, and returns
// the loss that windows share for each speaker, and the divergence of all
// speakers from the prior.
func (m *mixture) posterior(alpha *mat.Dense, phi []float64) (offset []float64, divergence float64) {
	ratio := m.acoustic / m.speakers
	offset = make([]float64, len(m.weights))
	for s := range offset {
		windows, row := mat.Sum(m.share.ColView(s)), alpha.RawRowView(s)
		for j, sum := range row {
			variance := 1 / (1 + ratio*windows*phi[j])
			mean := ratio * variance * sum
			row[j] = mean
			offset[s] += (variance + mean*mean) * phi[j] / 2
			divergence += m.speakers / 2 * (math.Log(variance) - variance - mean*mean + 1)
		}
	}
	return offset, divergence
}
