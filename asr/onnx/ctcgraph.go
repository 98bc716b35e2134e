package onnx

import (
	"fmt"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/internal/engine/ort"
)

// ctcGraph is a graph with a CTC output [N,T',V].
type ctcGraph struct {
	sessions
	head head
	out  string // name of the output
	skip int    // leading rows of each window that are not decoded
}

func (c *ctcGraph) ctc() *head { return &c.head }

// decodeRows decodes the rows of n windows, counts[i] rows for window i.
func (c *ctcGraph) decodeRows(scores *ort.Tensor, counts []int64, n int, req request) ([]hypothesis, error) {
	h, columns := &c.head, c.head.vocab.size()
	data, rows, err := scoreRows(c.source, c.out, scores, n, h.vocab)
	if err != nil {
		return nil, err
	}
	if len(counts) != n {
		return nil, fmt.Errorf("%s: %w: expected %d lengths of %s, found %d", c.source, ErrContract, n, c.out, len(counts))
	}
	hyps := make([]hypothesis, n)
	for i := range hyps {
		skip := min(c.skip, rows)
		own := max(int(min(counts[i], int64(rows)))-skip, 0)
		window := data[(i*rows+skip)*columns:][:own*columns]
		norms := h.norms(window, own, columns)
		spotted := req.spotter.Find(window, norms, columns)
		hyps[i].spotted = spotted
		hyps[i].emissions = h.put(h.search(window, norms, columns, prefixesPerBeam*req.beam, req.fusion), spotted)
		if req.keep {
			hyps[i].rows = align.NewRows(window, norms, columns, h.blank, h.shift)
		}
	}
	return hyps, nil
}
