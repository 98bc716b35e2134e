package diarize

import (
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// PLDA is a probabilistic linear discriminant analysis of an embedder's vectors
// (S. Ioffe, "Probabilistic Linear Discriminant Analysis", 2006). It takes them
// to a space in which the windows of one voice have the covariance matrix I
// around the voice's mean, and the means of voices have a diagonal covariance
// matrix.
type PLDA struct {
	mean1    []float64 // of the vectors
	lda      *mat.Dense
	mean2    []float64 // of the vectors after lda
	mean3    []float64 // of these, of the length √d
	whiten   *mat.Dense
	variance []float64 // between voices, per dimension
}

// ParsePLDA reads the PLDA of vectors x with D numbers and unit length from
// JSON: the lists mean1 [D], lda [D·d] row by row, mean2 [d], plda_mu [d],
// plda_tr [d·d] and plda_psi [d]. A vector's place in the space is
//
//	y = √d · unit(√D · unit(x − mean1) · lda − mean2),  z = (y − plda_mu) · plda_trᵀ
//
// and plda_psi is the variance between voices there. tools/convert/plda.py
// writes this from the files of pyannote's community-1. The error names the
// list whose length or value is wrong.
func ParsePLDA(data []byte, dim int) (*PLDA, error) {
	var f struct {
		Mean1 []float64 `json:"mean1"`
		LDA   []float64 `json:"lda"`
		Mean2 []float64 `json:"mean2"`
		Mu    []float64 `json:"plda_mu"`
		Tr    []float64 `json:"plda_tr"`
		Psi   []float64 `json:"plda_psi"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("PLDA: expected JSON with mean1, lda, mean2, plda_mu, plda_tr and plda_psi: %w", err)
	}
	to := len(f.Psi)
	for _, field := range []struct {
		name   string
		values []float64
		want   int
	}{
		{"mean1", f.Mean1, dim},
		{"plda_psi", f.Psi, max(to, 1)},
		{"lda", f.LDA, dim * to},
		{"mean2", f.Mean2, to},
		{"plda_mu", f.Mu, to},
		{"plda_tr", f.Tr, to * to},
	} {
		if len(field.values) != field.want {
			return nil, fmt.Errorf("PLDA from %d to %d numbers: %s: expected %d numbers, found %d", dim, to, field.name, field.want, len(field.values))
		}
	}
	if least := floats.Min(f.Psi); least < 0 {
		return nil, fmt.Errorf("PLDA: plda_psi: expected variances of 0 or more, found %g", least)
	}
	return &PLDA{f.Mean1, mat.NewDense(dim, to, f.LDA), f.Mean2, f.Mu, mat.NewDense(to, to, f.Tr), f.Psi}, nil
}

// project returns the vectors in the space of the analysis.
func (p *PLDA) project(x matrix) *mat.Dense {
	rows := mat.NewDense(x.n, x.dim, nil)
	rows.Apply(func(i, j int, _ float64) float64 { return float64(x.row(i)[j]) }, rows)
	center(rows, p.mean1)
	var reduced, out mat.Dense
	reduced.Mul(rows, p.lda)
	center(&reduced, p.mean2)
	for i := range x.n {
		floats.Sub(reduced.RawRowView(i), p.mean3)
	}
	out.Mul(&reduced, p.whiten.T())
	return &out
}

// center subtracts the mean from each row, and scales the row to the length √d.
func center(rows *mat.Dense, mean []float64) {
	n, d := rows.Dims()
	for i := range n {
		row := rows.RawRowView(i)
		floats.Sub(row, mean)
		if length := floats.Norm(row, 2); length > 0 {
			floats.Scale(math.Sqrt(float64(d))/length, row)
		}
	}
}
