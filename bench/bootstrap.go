package bench

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// estimate is a figure with its confidence interval.
type estimate struct {
	Value float64 `json:"value"`
	// Low and High bound the 95 % interval; both equal Value if there are fewer
	// than two recordings.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"n"` // number of recordings
}

// draws is how many samples bootstrap draws.
const draws = 1000

// bootstrap estimates a statistic of n recordings. statistic gets the indices
// of the recordings: first all of them, then samples drawn with replacement.
// The interval is from the 2.5th to the 97.5th percentile of the samples'
// values (Efron's percentile method). The same seed yields the same interval.
// bootstrap returns nil if the statistic of all recordings is not finite.
func bootstrap(n int, seed uint64, statistic func(sample []int) float64) *estimate {
	sample := all(n)
	value := statistic(sample)
	if n == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	e := &estimate{Value: value, Low: value, High: value, N: n}
	if n < 2 {
		return e
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	var values []float64
	for range draws {
		for i := range sample {
			sample[i] = random.IntN(n)
		}
		if v := statistic(sample); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) > 0 {
		slices.Sort(values)
		e.Low, e.High = percentile(values, 2.5), percentile(values, 97.5)
	}
	return e
}

// estimateSum estimates a figure of the sum of a list.
func estimateSum[T any](list []T, seed uint64, add func(a, b T) T, figure func(T) float64) *estimate {
	return bootstrap(len(list), seed, func(sample []int) float64 { return figure(sumOf(list, sample, add)) })
}

// sumOf adds up the elements of a list with the indices of a sample.
func sumOf[T any](list []T, sample []int, add func(a, b T) T) (sum T) {
	for _, i := range sample {
		sum = add(sum, list[i])
	}
	return sum
}

// all returns the sample that has each of n elements once.
func all(n int) []int {
	sample := make([]int, n)
	for i := range sample {
		sample[i] = i
	}
	return sample
}

// percentile returns the p-th percentile (0 to 100) of sorted values,
// interpolated linearly between neighbors: definition 7 of Hyndman and Fan
// (1996), which R and NumPy use. It returns NaN without values.
func percentile(sorted []float64, p float64) float64 {
	switch n := len(sorted); n {
	case 0:
		return math.NaN()
	case 1:
		return sorted[0]
	default:
		// gonum puts the k-th value at k/n (definition 4), so convert p.
		return stat.Quantile((p/100*float64(n-1)+1)/float64(n), stat.LinInterp, sorted, nil)
	}
}

func percentileOf(values []float64, p float64) float64 {
	return percentile(slices.Sorted(slices.Values(values)), p)
}

// median returns the 50th percentile of values in any order.
func median(values []float64) float64 { return percentileOf(values, 50) }
