package diarize

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// centroids returns the normalized means of the vectors of each label; a label
// without vectors has a zero row.
func centroids(x matrix, labels []int, k int) matrix {
	c := newMatrix(k, x.dim)
	for l, row := range totals(x, labels, k) {
		length := math.Sqrt(floats.Dot(row, row))
		if length == 0 {
			continue
		}
		for d, v := range row {
			c.row(l)[d] = float32(v / length)
		}
	}
	return c
}

func totals(x matrix, labels []int, k int) [][]float64 {
	sums := make([][]float64, k)
	for l := range sums {
		sums[l] = make([]float64, x.dim)
	}
	for i, l := range labels {
		for d, v := range x.row(i) {
			sums[l][d] += float64(v)
		}
	}
	return sums
}

// nearestCentroids labels every vector with the most similar centroid.
func nearestCentroids(x, centre matrix) []int {
	labels := make([]int, x.n)
	for i := range x.n {
		labels[i], _ = nearestCentroid(x.row(i), centre)
	}
	return labels
}

// nearestCentroid returns the label most similar to v, and their cosine.
func nearestCentroid(v []float32, centre matrix) (label int, cosine float32) {
	cosine = float32(math.Inf(-1))
	for l := range centre.n {
		if c := dot1(v, centre.row(l)); c > cosine {
			label, cosine = l, c
		}
	}
	return label, cosine
}

// Similarity returns the cosine, −1 to 1, of two vectors of an Embedder; 0 for
// zero vectors and for different dimensions.
func Similarity(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var product, squaresA, squaresB float64
	for i, x := range a {
		y := float64(b[i])
		product += float64(x) * y
		squaresA += float64(x) * float64(x)
		squaresB += y * y
	}
	if squaresA == 0 || squaresB == 0 {
		return 0
	}
	return product / math.Sqrt(squaresA*squaresB)
}
