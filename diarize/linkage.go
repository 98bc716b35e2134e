package diarize

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// matrix holds n row vectors of one dimension in one slice.
type matrix struct {
	data   []float32
	n, dim int
}

func newMatrix(n, dim int) matrix { return matrix{data: make([]float32, n*dim), n: n, dim: dim} }

func (m matrix) row(i int) []float32 { return m.data[i*m.dim : (i+1)*m.dim : (i+1)*m.dim] }

// merge is one step of an agglomeration: the cluster of b becomes part of the
// cluster of a < b. sim is the mean cosine between their members, of
// averageLinkage.
type merge struct {
	a, b int
	sim  float32
}

// averageLinkage agglomerates unit vectors by average linkage on cosine
// distance and returns the n−1 merges, most similar first. It holds n(n−1)/2
// float32 (200 MB for 10,000 vectors) while it runs.
//
// It is the nearest-neighbor chain algorithm (F. Murtagh, "A survey of recent
// advances in hierarchical clustering algorithms", 1983): follow nearest
// neighbors until two are each other's, merge them; O(n²) time. The linkage is
// reducible (a merged cluster is never nearer to a third than the nearer of its
// parts), so the rest of the chain stays valid.
func averageLinkage(ctx context.Context, x matrix, threads int) ([]merge, error) {
	n := x.n
	if n < 2 {
		return nil, ctx.Err()
	}
	c := &chain{sim: make([]float32, n*(n-1)/2), n: n, size: slices.Repeat([]int{1}, n), active: counting(n)}
	if err := c.fill(ctx, x, max(threads, 1)); err != nil {
		return nil, err
	}
	merges := make([]merge, 0, n-1)
	path := make([]int, 0, n) // clusters; the similarity to the next one grows strictly along the path
	for len(merges) < n-1 {
		if len(merges)&63 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(path) == 0 {
			path = append(path, c.active[0])
		}
		top, before := path[len(path)-1], -1
		if len(path) > 1 {
			before = path[len(path)-2]
		}
		next, sim := c.nearest(top, before)
		if next != before {
			path = append(path, next)
			continue
		}
		path = path[:len(path)-2]
		m := merge{min(top, before), max(top, before), sim}
		merges = append(merges, m)
		c.join(m.a, m.b)
	}
	slices.SortStableFunc(merges, func(a, b merge) int { return cmp.Compare(b.sim, a.sim) })
	return merges, nil
}

// chain is the state: clusters, each numbered as its first vector.
type chain struct {
	sim    []float32 // condensed upper triangle: mean cosine between members
	n      int
	size   []int // per cluster: members
	active []int // clusters, ascending
}

// at returns the index of the pair i < j in the condensed triangle.
func (c *chain) at(i, j int) int { return i*(2*c.n-i-1)/2 + j - i - 1 }

// join makes cluster j part of i < j.
func (c *chain) join(i, j int) {
	total := float32(c.size[i] + c.size[j])
	wi, wj := float32(c.size[i])/total, float32(c.size[j])/total
	at, _ := slices.BinarySearch(c.active, j)
	c.active = slices.Delete(c.active, at, at+1)
	c.size[i] += c.size[j]
	for _, k := range c.active {
		if k != i {
			ik := c.at(min(i, k), max(i, k))
			c.sim[ik] = wi*c.sim[ik] + wj*c.sim[c.at(min(j, k), max(j, k))]
		}
	}
}

// nearest returns the cluster nearest to p and their similarity: prefer if it
// is equally near, else the first.
func (c *chain) nearest(p, prefer int) (nearest int, sim float32) {
	nearest, sim = prefer, -2
	if prefer >= 0 {
		sim = c.sim[c.at(min(p, prefer), max(p, prefer))]
	}
	split, _ := slices.BinarySearch(c.active, p)
	for _, q := range c.active[:split] {
		if v := c.sim[c.at(q, p)]; v > sim {
			nearest, sim = q, v
		}
	}
	row := c.at(p, p+1) - p - 1
	for _, q := range c.active[split+1:] {
		if v := c.sim[row+q]; v > sim {
			nearest, sim = q, v
		}
	}
	return nearest, sim
}

// blockRows rows of 192 numbers are 48 KB: two blocks fit into the L2 cache.
const blockRows = 64

// fill computes similarities, block by block.
func (c *chain) fill(ctx context.Context, x matrix, threads int) error {
	blocks := (c.n + blockRows - 1) / blockRows
	next := make(chan int, blocks)
	for b := range blocks {
		next <- b
	}
	close(next)
	var wg sync.WaitGroup
	for range min(threads, blocks) {
		wg.Go(func() {
			for b := range next {
				for other := b; other < blocks && ctx.Err() == nil; other++ {
					c.block(x, b*blockRows, other*blockRows)
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// block compares the rows at row with those at column, the same or later ones.
func (c *chain) block(x matrix, row, column int) {
	var out [8]float32
	rowEnd, end := min(row+blockRows, c.n), min(column+blockRows, c.n)
	for i := row; i < rowEnd; i += 2 {
		j := max(column, i+2)
		if i+1 < rowEnd {
			if row == column {
				c.sim[c.at(i, i+1)] = dot1(x.row(i), x.row(i+1))
			}
			for ; j+3 < end; j += 4 {
				dot2x4(&out, x.row(i), x.row(i+1), x.row(j), x.row(j+1), x.row(j+2), x.row(j+3))
				copy(c.sim[c.at(i, j):], out[:4])
				copy(c.sim[c.at(i+1, j):], out[4:])
			}
		}
		for k := i; k < min(i+2, rowEnd); k++ {
			for q := j; q < end; q++ {
				c.sim[c.at(k, q)] = dot1(x.row(k), x.row(q))
			}
		}
	}
}

// cut returns the labels of the n vectors, or base clusters, when the
// agglomeration stops at k clusters, numbered by first appearance.
func cut(merges []merge, n, k int) []int {
	labels := counting(n)
	for _, m := range merges[:max(0, n-max(k, 1))] {
		from, to := labels[m.b], labels[m.a]
		for i, l := range labels {
			if l == from {
				labels[i] = to
			}
		}
	}
	return byFirstAppearance(labels)
}

// byFirstAppearance renumbers labels 0, 1, … in order of first occurrence.
func byFirstAppearance(labels []int) []int {
	number := make(map[int]int)
	out := make([]int, len(labels))
	for i, l := range labels {
		k, ok := number[l]
		if !ok {
			k = len(number)
			number[l] = k
		}
		out[i] = k
	}
	return out
}

// ward joins the base clusters step by step (J. H. Ward, "Hierarchical grouping
// to optimize an objective function", 1963): each step joins the two groups
// whose union adds least to the squared distances of the vectors from their
// group's mean. Average linkage, which made the base clusters, splits off
// outlying windows first, and two voices of real people last.
func (s *sums) ward() []merge {
	k := len(s.count)
	size, dots := s.sizes(counting(k), k), slices.Clone(s.gram)
	cost := func(a, b int) float64 {
		n, m := size[a], size[b]
		return n * m / (n + m) * (dots[a*k+a]/(n*n) + dots[b*k+b]/(m*m) - 2*dots[a*k+b]/(n*m))
	}
	out := make([]merge, 0, max(k-1, 0))
	for len(out) < k-1 {
		best, least := merge{a: -1}, 0.0
		for a := range k {
			if size[a] == 0 {
				continue
			}
			for b := a + 1; b < k; b++ {
				if size[b] == 0 {
					continue
				}
				if c := cost(a, b); best.a < 0 || c < least {
					best, least = merge{a: a, b: b}, c
				}
			}
		}
		a, b := best.a, best.b
		for c := range k {
			dots[a*k+c] += dots[b*k+c]
		}
		for c := range k {
			dots[c*k+a] += dots[c*k+b]
		}
		size[a], size[b] = size[a]+size[b], 0
		out = append(out, best)
	}
	return out
}
