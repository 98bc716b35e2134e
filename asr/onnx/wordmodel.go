package onnx

import "slices"

// wordModel is a back-off language model over words (S. Katz 1987, Estimation of
// probabilities from sparse data), as an ARPA file defines it. It is safe for
// concurrent use. Its nodes are n-grams in a trie: node 0 is the empty one; a
// node's children are its continuations by one word, stored contiguously in the
// order of words. Longer n-grams are stored after shorter ones.
type wordModel struct {
	// words are lower-cased and sorted; a word's number is its place here.
	words []string
	// start is the node of the beginning of a sentence; end is the number of
	// the word that ends one, -1 if the model has none.
	start, end int32
	// unknown is the log probability of a word that the model does not list.
	unknown float64
	word    []int32
	// logProb is the log probability of a node's last word after the words
	// before it; backoff is added where a context lacks a word.
	logProb, backoff []float32
	// suffix is the longest node that is a proper suffix of this one. first is
	// the place of a node's first child; the next node's first ends the list.
	suffix, first []int32
}

// child finds a node's continuation by a word.
func (m *wordModel) child(node, word int32) (int32, bool) {
	begin, end := m.first[node], int32(len(m.word))
	if int(node)+1 < len(m.first) {
		end = m.first[node+1]
	}
	i, ok := slices.BinarySearch(m.word[begin:end], word)
	return begin + int32(i), ok
}

// next returns the natural logarithm of the probability of a word in a context,
// and the context after the word.
func (m *wordModel) next(context, word int32) (float64, int32) {
	sum := 0.0
	for {
		if n, ok := m.child(context, word); ok {
			return sum + float64(m.logProb[n]), m.context(n)
		}
		if context == 0 {
			return sum + m.unknown, 0
		}
		sum += float64(m.backoff[context])
		context = m.suffix[context]
	}
}

// context returns the longest suffix of an n-gram that the model can continue.
func (m *wordModel) context(n int32) int32 {
	for n != 0 && m.first[n] == m.first[n+1] {
		n = m.suffix[n]
	}
	return n
}

// add appends the sorted n-grams of one length to the shorter ones.
func (m *wordModel) add(grams []gram) {
	k := 0
	for node := int32(len(m.first)); int(node) < len(m.word); node++ {
		m.first = append(m.first, int32(len(m.word)+k))
		for k < len(grams) && grams[k].parent == node {
			k++
		}
	}
	for _, g := range grams {
		m.word = append(m.word, g.word)
		m.logProb = append(m.logProb, g.logProb)
		m.backoff = append(m.backoff, g.backoff)
	}
}

// link closes the table of children and finds each node's suffix.
func (m *wordModel) link() {
	m.add(nil)
	m.first = append(m.first, int32(len(m.word)))
	m.suffix = make([]int32, len(m.word))
	for parent := 1; parent < len(m.word); parent++ { // the suffix of a single word is the empty node
		for n := m.first[parent]; n < m.first[parent+1]; n++ {
			for at := m.suffix[parent]; ; at = m.suffix[at] {
				if s, ok := m.child(at, m.word[n]); ok {
					m.suffix[n] = s
					break
				}
				if at == 0 {
					break
				}
			}
		}
	}
}
