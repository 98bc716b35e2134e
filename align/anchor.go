package align

import (
	"hash/maphash"
	"slices"

	"github.com/otograph/otograph/internal/engine/decode"
)

// pair matches a word of the text with a recognized word.
type pair struct{ text, recognized int }

const (
	// maxTable bounds the cells of a comparison of words.
	maxTable = 1 << 20
	// stride and reach are the numbers of recognized words and of words of the
	// text that are compared at a time if a stretch is too long for one table.
	stride, reach = 400, 1600
	// anchorLength is the number of consecutive equal words of an anchor.
	anchorLength = 3
)

// match pairs the words of a text with the recognized words, in order. It first
// matches runs of words that occur once on both sides, wherever they are, and
// then compares the stretches between them word by word.
func match(text, recognized []string) []pair {
	var pairs []pair
	var begin pair
	var c comparison
	for _, p := range append(unique(text, recognized), pair{len(text), len(recognized)}) {
		pairs = c.between(pairs, text, recognized, begin, p)
		if p.text < len(text) {
			pairs = append(pairs, p)
		}
		begin = pair{p.text + 1, p.recognized + 1}
	}
	return pairs
}

// unique returns the middle words of runs of three that occur once on both
// sides: the largest set in the same order (the longest increasing subsequence,
// as in a patience diff).
func unique(text, recognized []string) []pair {
	seed := maphash.MakeSeed() // hashes, because hours have too many runs to store
	places := func(list []string) map[uint64]int32 {
		out := map[uint64]int32{}
		for i := 0; i+anchorLength <= len(list); i++ {
			r := maphash.Comparable(seed, [anchorLength]string(list[i:i+anchorLength]))
			if _, twice := out[r]; twice {
				out[r] = -1
				continue
			}
			out[r] = int32(i)
		}
		return out
	}
	inRecognized := places(recognized)
	var common []pair
	for r, i := range places(text) {
		if j, ok := inRecognized[r]; ok && i >= 0 && j >= 0 && slices.Equal(text[i:i+anchorLength], recognized[j:j+anchorLength]) {
			common = append(common, pair{int(i) + 1, int(j) + 1})
		}
	}
	slices.SortFunc(common, func(a, b pair) int { return a.text - b.text })
	return increasing(common)
}

// increasing returns the longest subsequence of pairs that is in order of
// recognized. pairs are in order of text.
func increasing(pairs []pair) []pair {
	var tails []int // index of the pair that ends the best sequence of each length
	before := make([]int, len(pairs))
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(tails, p.recognized, func(t, recognized int) int { return pairs[t].recognized - recognized })
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]pair, len(tails))
	for i, k := tails[len(tails)-1], len(tails)-1; k >= 0; i, k = before[i], k-1 {
		out[k] = pairs[i]
	}
	return out
}

// comparison holds the tables of the method common, which reuses them.
type comparison struct {
	score []int32
	run   []uint8
}

// between compares the words from begin up to end and appends the pairs that it
// finds. A stretch too long for one table is compared in parts.
func (c *comparison) between(pairs []pair, text, recognized []string, begin, end pair) []pair {
	for begin.text < end.text && begin.recognized < end.recognized {
		to := end
		whole := (end.text-begin.text)*(end.recognized-begin.recognized) <= maxTable
		if !whole {
			to = pair{min(begin.text+reach, end.text), min(begin.recognized+stride, end.recognized)}
		}
		found := c.common(text[begin.text:to.text], recognized[begin.recognized:to.recognized])
		if whole {
			for _, p := range found {
				pairs = append(pairs, pair{begin.text + p.text, begin.recognized + p.recognized})
			}
			return pairs
		}
		// The last quarter is compared again: its match may be further on.
		kept := found
		for len(kept) > 0 && kept[len(kept)-1].recognized >= stride*3/4 {
			kept = kept[:len(kept)-1]
		}
		next := pair{begin.text, to.recognized} // no word of the stretch is in the text
		for _, p := range kept {
			pairs = append(pairs, pair{begin.text + p.text, begin.recognized + p.recognized})
			next = pair{begin.text + p.text + 1, begin.recognized + p.recognized + 1}
		}
		if len(kept) < stride/10 { // chance matches, not the same text
			pairs = pairs[:len(pairs)-len(kept)]
			next = pair{begin.text, to.recognized}
		}
		begin = next
	}
	return pairs
}

// common returns a longest common subsequence of two lists. Runs of equal words
// count more than the same number of single ones.
func (c *comparison) common(a, b []string) []pair {
	const step = 1 << 8 // a word counts one step, in a run slightly more
	width := len(b) + 1
	c.score, c.run = decode.Sized(c.score, (len(a)+1)*width), decode.Sized(c.run, (len(a)+1)*width)
	score, run := c.score, c.run
	clear(score)
	clear(run)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			at := i*width + j
			best, length := max(score[at+1], score[at+width]), uint8(0)
			if a[i] == b[j] && a[i] != "" {
				n := run[at+width+1]
				if s := score[at+width+1] + step + int32(min(n, 8))*16; s >= best {
					best, length = s, min(n, 254)+1
				}
			}
			score[at], run[at] = best, length
		}
	}
	var out []pair
	for i, j := 0, 0; i < len(a) && j < len(b); {
		at := i*width + j
		switch {
		case run[at] > 0:
			out = append(out, pair{i, j})
			i, j = i+1, j+1
		case score[at+1] >= score[at+width]: // prefers the later match, for a text that repeats itself
			j++
		default:
			i++
		}
	}
	return out
}
