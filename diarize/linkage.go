package diarize

import (
	"context"
	"slices"
	"sync"
)

// matrix holds n row vectors of one dimension in one slice.
type matrix struct {
	data []float32
	n    int
	dim  int
}

func newMatrix(n, dim int) matrix {
	return matrix{data: make([]float32, n*dim), n: n, dim: dim}
}

func (m matrix) row(i int) []float32 { return m.data[i*m.dim : (i+1)*m.dim : (i+1)*m.dim] }

// merge is one step of an agglomeration: nodes a and b (0 … n−1 are the
// vectors, n+i is the result of merge i in the order the merges were found)
// become one, at the mean cosine sim between their members.
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
// parts), so a cluster's nearest neighbor stays valid until that is merged
// itself; the first n are computed with the similarities.
func averageLinkage(ctx context.Context, x matrix, threads int) ([]merge, error) {
	n := x.n
	if n < 2 {
		return nil, ctx.Err()
	}
	c := &chain{
		sim: make([]float32, n*(n-1)/2), n: n,
		size: make([]int, n), node: make([]int, n), place: make([]int, 2*n-1), active: make([]int32, n),
	}
	for i := range n {
		c.size[i], c.node[i], c.place[i], c.active[i] = 1, i, i, int32(i)
	}
	for i := n; i < 2*n-1; i++ {
		c.place[i] = -1
	}
	if err := c.fill(ctx, x, max(threads, 1)); err != nil {
		return nil, err
	}

	merges := make([]merge, 0, n-1)
	path := make([]int, 0, n) // nodes; similarity to the next grows strictly along it
	for len(merges) < n-1 {
		if len(merges)&63 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(path) == 0 {
			path = append(path, c.node[c.active[0]])
		}
		top := path[len(path)-1]
		p := c.place[top]
		if c.place[c.near[p]] < 0 { // the neighbor has been merged
			c.near[p], c.nearSim[p] = c.nearest(p)
		}
		if len(path) > 1 {
			// Prefer the previous node on a tie, or the chain might not end.
			before := path[len(path)-2]
			if sim := c.nearSim[c.place[before]]; sim >= c.nearSim[p] {
				path = path[:len(path)-2]
				merges = append(merges, merge{before, top, sim})
				c.join(before, top, n+len(merges)-1)
				continue
			}
		}
		path = append(path, c.near[p])
	}
	return sortMerges(merges, n), nil
}

// chain is the state: clusters in places 0 … n−1, that of one of their vectors.
type chain struct {
	sim     []float32 // condensed upper triangle over places: mean cosine between members
	n       int
	size    []int     // per place: members
	node    []int     // per place: node number
	near    []int     // per place: node number of the nearest cluster
	nearSim []float32 // per place: similarity to it
	place   []int     // per node: place, −1 if already merged or not yet made
	active  []int32   // places in use, ascending
}

// at returns the index of the pair i < j in the condensed triangle.
func (c *chain) at(i, j int) int { return i*(2*c.n-i-1)/2 + j - i - 1 }

// join replaces nodes a and b with the new node.
func (c *chain) join(a, b, node int) {
	i, j := c.place[a], c.place[b] // place j becomes free
	if i > j {
		i, j = j, i
	}
	total := c.size[i] + c.size[j]
	wi, wj := float32(c.size[i])/float32(total), float32(c.size[j])/float32(total)
	at, _ := slices.BinarySearch(c.active, int32(j))
	c.active = slices.Delete(c.active, at, at+1)
	for _, p := range c.active {
		k := int(p)
		switch {
		case k < i:
			ki := c.at(k, i)
			c.sim[ki] = wi*c.sim[ki] + wj*c.sim[ki+j-i]
		case k == i:
		case k < j:
			ik := c.at(i, k)
			c.sim[ik] = wi*c.sim[ik] + wj*c.sim[c.at(k, j)]
		default:
			ik := c.at(i, k)
			c.sim[ik] = wi*c.sim[ik] + wj*c.sim[c.at(j, k)]
		}
	}
	c.place[a], c.place[b], c.place[node] = -1, -1, i
	c.size[i], c.node[i] = total, node
	c.near[i] = a // merged: searched again when needed
}

// nearest finds the cluster nearest to the one in place p.
func (c *chain) nearest(p int) (node int, sim float32) {
	node, sim = -1, -2
	split, _ := slices.BinarySearch(c.active, int32(p))
	for _, q := range c.active[:split] {
		if v := c.sim[c.at(int(q), p)]; v >= sim && better(v, c.node[q], sim, node) {
			node, sim = c.node[q], v
		}
	}
	if p == c.n-1 {
		return node, sim
	}
	row := c.sim[c.at(p, p+1):]
	for _, q := range c.active[split+1:] {
		if v := row[int(q)-p-1]; v >= sim && better(v, c.node[q], sim, node) {
			node, sim = c.node[q], v
		}
	}
	return node, sim
}

// better orders candidates by similarity, then by number, so that the winner
// does not depend on the order of the search.
func better(sim float32, node int, bestSim float32, bestNode int) bool {
	return sim > bestSim || sim == bestSim && node < bestNode
}

// blockRows rows of 192 numbers are 48 KB: two blocks fit into the L2 cache.
const blockRows = 64

// fill computes similarities, block by block, and all nearest neighbors.
func (c *chain) fill(ctx context.Context, x matrix, threads int) error {
	blocks := (c.n + blockRows - 1) / blockRows
	next := make(chan int, blocks)
	for b := range blocks {
		next <- b
	}
	close(next)
	searches := make([]*search, min(threads, blocks))
	var wg sync.WaitGroup
	for w := range searches {
		s := newSearch(c, x)
		searches[w] = s
		wg.Go(func() {
			for b := range next {
				for other := b; other < blocks && ctx.Err() == nil; other++ {
					s.block(b*blockRows, other*blockRows)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range searches[1:] {
		searches[0].merge(s)
	}
	c.near, c.nearSim = searches[0].node, searches[0].sim
	return nil
}

// search computes similarities on one goroutine, and keeps the nearest
// neighbor of every vector among the pairs that it compared.
type search struct {
	c    *chain
	x    matrix
	node []int
	sim  []float32
	out  [8]float32
}

func newSearch(c *chain, x matrix) *search {
	s := &search{c: c, x: x, node: make([]int, c.n), sim: make([]float32, c.n)}
	for i := range s.node {
		s.node[i], s.sim[i] = -1, -2
	}
	return s
}

// pair records the similarity v of i < j; at is their index in the triangle.
func (s *search) pair(at, i, j int, v float32) {
	s.c.sim[at] = v
	s.offer(i, j, v)
	s.offer(j, i, v)
}

// offer makes node the nearest to i if it is nearer than the previous one.
func (s *search) offer(i, node int, v float32) {
	if v >= s.sim[i] && better(v, node, s.sim[i], s.node[i]) {
		s.node[i], s.sim[i] = node, v
	}
}

// merge takes over the nearer neighbors of another search.
func (s *search) merge(o *search) {
	for i, node := range o.node {
		if node >= 0 {
			s.offer(i, node, o.sim[i])
		}
	}
}

// block compares the rows at row with those at column, the same or later ones.
func (s *search) block(row, column int) {
	rowEnd, end := min(row+blockRows, s.c.n), min(column+blockRows, s.c.n)
	for i := row; i < rowEnd; i += 2 {
		from := column
		if row == column {
			from = i + 2
		}
		if i+1 == rowEnd { // the last row of an odd number
			for j := from; j < end; j++ {
				s.pair(s.c.at(i, j), i, j, dot1(s.x.row(i), s.x.row(j)))
			}
			continue
		}
		if row == column {
			s.pair(s.c.at(i, i+1), i, i+1, dot1(s.x.row(i), s.x.row(i+1)))
		}
		s.twoRows(i, from, end)
	}
}

// twoRows compares rows i and i+1 with rows from to end.
func (s *search) twoRows(i, from, end int) {
	x, j := s.x, from
	at, below := s.c.at(i, j), s.c.at(i+1, j)
	for ; j+3 < end; j += 4 {
		dot2x4(&s.out, x.row(i), x.row(i+1), x.row(j), x.row(j+1), x.row(j+2), x.row(j+3))
		for k := range 4 {
			s.pair(at+k, i, j+k, s.out[k])
			s.pair(below+k, i+1, j+k, s.out[4+k])
		}
		at, below = at+4, below+4
	}
	for ; j < end; j++ {
		s.pair(at, i, j, dot1(x.row(i), x.row(j)))
		s.pair(below, i+1, j, dot1(x.row(i+1), x.row(j)))
		at, below = at+1, below+1
	}
}

// sortMerges puts merges in order of falling similarity (of discovery on ties,
// so that no merge precedes its parts) and renumbers their nodes.
func sortMerges(merges []merge, n int) []merge {
	order := make([]int, len(merges))
	for i := range order {
		order[i] = i
	}
	// Rounding can make a merge more similar than one of its parts by a last
	// bit; lower it, or it would sort before its parts.
	for i := range merges {
		for _, part := range []int{merges[i].a, merges[i].b} {
			if part >= n {
				merges[i].sim = min(merges[i].sim, merges[part-n].sim)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case merges[a].sim > merges[b].sim:
			return -1
		case merges[a].sim < merges[b].sim:
			return 1
		}
		return 0
	})
	renumber := make([]int, len(merges))
	sorted := make([]merge, len(merges))
	for place, i := range order {
		renumber[i] = n + place
	}
	for place, i := range order {
		m := merges[i]
		if m.a >= n {
			m.a = renumber[m.a-n]
		}
		if m.b >= n {
			m.b = renumber[m.b-n]
		}
		sorted[place] = m
	}
	return sorted
}

// cut returns the labels of the n vectors when the agglomeration stops at k
// clusters, numbered by first appearance.
func cut(merges []merge, n, k int) []int {
	parent := make([]int, n+len(merges))
	for i := range parent {
		parent[i] = i
	}
	for i, m := range merges[:max(0, n-max(k, 1))] {
		parent[m.a], parent[m.b] = n+i, n+i
	}
	// Parents have higher numbers than their parts: one pass from the top.
	for i := len(parent) - 1; i >= 0; i-- {
		parent[i] = parent[parent[i]]
	}
	return byFirstAppearance(parent[:n])
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
