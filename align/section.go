package align

// section is a stretch of the recording with its words between two anchors.
type section struct {
	words  [2]int // range of words of the text
	frames [2]int // range of frames
}

const (
	// sectionFrames is the least length of a section, if the anchors allow one
	// so short and its frames suffice for its words.
	sectionFrames = 400
	// maxCells bounds the cells of a section's lattice (a byte each, its nodes
	// eight). Lattices above largeCells, of texts without anchors, are computed
	// one at a time: memory does not grow with the cores.
	maxCells   = 12 << 20
	largeCells = maxCells / 8
	// cellsPerLetter is the approximate number of lattice states per letter.
	cellsPerLetter = 14
)

// sections cuts the recording at anchors, inside runs of anchorLength or more
// words that are equal in text and sound. recognized holds the frames, counted over
// all windows, at which the recognized words begin. Words that are too far before
// the first anchor or after the last one to be spoken are in no section.
func sections(words []word, recognized []int, pairs []pair, frames int) []section {
	var out []section
	begin := section{}
	add := func(toWord, toFrame int) {
		s := section{[2]int{begin.words[1], toWord}, [2]int{begin.frames[1], toFrame}}
		out = append(out, s)
		begin = s
	}
	run := 0
	for i := 1; i < len(pairs); i++ {
		p, q := pairs[i-1], pairs[i]
		if q.text != p.text+1 || q.recognized != p.recognized+1 {
			run = 0
			continue
		}
		run++
		first := recognized[q.recognized]
		length := first - begin.frames[1]
		if run < anchorLength-1 || length < sectionFrames && q.text-begin.words[1] <= length {
			continue
		}
		// The run must continue after the cut, so that the anchor does not
		// depend on the run's last word alone.
		if i+1 < len(pairs) && (pairs[i+1] == pair{q.text + 1, q.recognized + 1}) && first > recognized[p.recognized]+1 {
			add(q.text, first)
			run = 0
		}
	}
	add(len(words), frames)
	if head, tail := &out[0], &out[len(out)-1]; head != tail {
		head.words[0] = max(0, head.words[1]-head.most())
		tail.words[1] = min(len(words), tail.words[0]+tail.most())
	}
	return out
}

// most returns more words than can be spoken in the section: one in 80 ms with
// the shortest frames.
func (s section) most() int { return (s.frames[1] - s.frames[0]) / 2 }

// cells estimates the number of cells of the section's lattice.
func (s section) cells(words []word) int {
	return (s.frames[1] - s.frames[0]) * s.nodes(words) * cellsPerLetter
}

func (s section) nodes(words []word) (n int) {
	for _, w := range words[s.words[0]:s.words[1]] {
		n += w.nodes()
	}
	return n
}

// bounded splits a section whose lattice would be too large because it contains
// no anchor. It divides the words by their letters.
func bounded(s section, words []word) []section {
	if s.cells(words) <= maxCells || s.frames[1]-s.frames[0] < 2 || s.words[1]-s.words[0] < 2 {
		return []section{s}
	}
	half, at, all := 0, s.words[0], s.nodes(words)
	for half < all/2 && at < s.words[1]-1 {
		half += words[at].nodes()
		at++
	}
	middle := (s.frames[0] + s.frames[1]) / 2
	return append(bounded(section{[2]int{s.words[0], at}, [2]int{s.frames[0], middle}}, words),
		bounded(section{[2]int{at, s.words[1]}, [2]int{middle, s.frames[1]}}, words)...)
}
