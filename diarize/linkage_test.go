package diarize

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/voices"
)

// clusterCase is a stored result of scikit-learn 1.4.2 (AgglomerativeClustering
// with average linkage on cosine distance, silhouette_score).
type clusterCase struct {
	Name       string      `json:"name"`
	Embeddings [][]float32 `json:"embeddings"`
	BestK      int         `json:"best_k"`
	K          map[int]struct {
		Labels     []int   `json:"labels"`
		Silhouette float64 `json:"silhouette"`
	} `json:"k"`
}

func readCases(t *testing.T) []clusterCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cluster_cases.json")
	require.NoError(t, err)
	var cases []clusterCase
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Len(t, cases, 8)
	return cases
}

// toMatrix copies vectors as rows of unit length.
func toMatrix(vectors [][]float32) matrix {
	m := newMatrix(len(vectors), len(vectors[0]))
	for i, v := range vectors {
		copy(m.row(i), v)
		voices.Normalize(m.row(i))
	}
	return m
}

func TestLinkageAndSilhouetteAgreeWithScikitLearn(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			x := toMatrix(c.Embeddings)
			merges, err := averageLinkage(t.Context(), x, 2)
			require.NoError(t, err)
			base := cut(merges, x.n, x.n)
			s := newSums(x, base, x.n) // every vector is its own base cluster: any cut is a union of them
			bestK, best := 0, -2.0
			require.GreaterOrEqual(t, len(c.K), 9)
			for k := 2; k <= 10; k++ {
				want := c.K[k]
				got := cut(merges, x.n, k)
				assert.Equal(t, want.Labels, got, "k=%d", k)
				v := s.silhouette(got, k)
				assert.InDelta(t, want.Silhouette, v, 1e-5, "k=%d", k)
				if v > best {
					bestK, best = k, v
				}
			}
			assert.Equal(t, c.BestK, bestK)
		})
	}
}

// naive is average linkage by definition in float64: it compares every pair and
// merges the nearest.
func naive(x matrix, k int) []int {
	members := make([][]int, x.n)
	for i := range members {
		members[i] = []int{i}
	}
	dot := func(a, b int) (s float64) {
		for d, v := range x.row(a) {
			s += float64(v) * float64(x.row(b)[d])
		}
		return s
	}
	for len(members) > k {
		bi, bj, best := 0, 0, math.Inf(-1)
		for i := range members {
			for j := range i {
				var sum float64
				for _, a := range members[i] {
					for _, b := range members[j] {
						sum += dot(a, b)
					}
				}
				if v := sum / float64(len(members[i])*len(members[j])); v > best {
					bi, bj, best = i, j, v
				}
			}
		}
		members[bj] = append(members[bj], members[bi]...)
		members = slices.Delete(members, bi, bi+1)
	}
	labels := make([]int, x.n)
	for l, m := range members {
		for _, i := range m {
			labels[i] = l
		}
	}
	return byFirstAppearance(labels)
}

func TestLinkageMatchesItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		x := newMatrix(n, 24)
		for i := range x.data {
			x.data[i] = float32(r.NormFloat64())
		}
		for i := range n {
			x.row(i)[i%3] += 3
			voices.Normalize(x.row(i))
		}
		merges, err := averageLinkage(context.Background(), x, 1)
		if err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= min(n, 12); k++ {
			want := naive(x, k)
			if got := cut(merges, n, k); !slices.Equal(want, got) {
				t.Fatalf("k=%d: expected %v, got %v", k, want, got)
			}
		}
	})
}

// TestLinkageOfDegenerateVectors: ties everywhere must neither loop nor lose a
// merge.
func TestLinkageOfDegenerateVectors(t *testing.T) {
	for _, n := range []int{1, 2, 3, 65, 130, 300} {
		for name, fill := range map[string]func(i int, row []float32){
			"equal":    func(_ int, row []float32) { row[0] = 1 },
			"opposite": func(i int, row []float32) { row[0] = float32(1 - 2*(i%2)) },
			"axes":     func(i int, row []float32) { row[i%len(row)] = 1 },
			"zero":     func(int, []float32) {},
		} {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				x := newMatrix(n, 5)
				for i := range n {
					fill(i, x.row(i))
				}
				merges, err := averageLinkage(t.Context(), x, 2)
				require.NoError(t, err)
				require.Len(t, merges, n-1)
				for k := 1; k <= min(n, 6); k++ {
					labels := cut(merges, n, k)
					assert.Equal(t, k, distinct(labels), "k=%d", k)
				}
				for i := 1; i < len(merges); i++ {
					assert.GreaterOrEqual(t, merges[i-1].sim, merges[i].sim)
				}
			})
		}
	}
}

func TestLinkageDoesNotDependOnThreads(t *testing.T) {
	x, _ := simulate(rand.New(rand.NewPCG(5, 5)), []int{400, 300, 200, 277}, simulated{})
	one, err := averageLinkage(t.Context(), x, 1)
	require.NoError(t, err)
	for _, threads := range []int{2, 5} {
		several, err := averageLinkage(t.Context(), x, threads)
		require.NoError(t, err)
		assert.Equal(t, one, several, "%d threads", threads)
	}
}

func TestLinkageStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := averageLinkage(ctx, newMatrix(300, 8), 2)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestDotKernelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 5, 7, 8, 9, 16, 24, 192, 193, 256, 511} {
		m := newMatrix(6, dim)
		for i := range m.data {
			m.data[i] = float32(r.NormFloat64())
		}
		var fast, slow [8]float32
		dot2x4(&fast, m.row(0), m.row(1), m.row(2), m.row(3), m.row(4), m.row(5))
		dot2x4Go(&slow, m.row(0), m.row(1), m.row(2), m.row(3), m.row(4), m.row(5))
		for i := range 8 {
			var exact, size float64
			for d, v := range m.row(i / 4) {
				exact += float64(v) * float64(m.row(2 + i%4)[d])
				size += math.Abs(float64(v) * float64(m.row(2 + i%4)[d]))
			}
			assert.InDelta(t, exact, fast[i], 1e-6*size, "dim %d, product %d", dim, i)
			assert.InDelta(t, exact, slow[i], 1e-5*size, "dim %d, product %d", dim, i)
		}
	}
}
