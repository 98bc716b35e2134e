package onnx

import (
	"fmt"

	"github.com/otograph/otograph/align"
	"github.com/otograph/otograph/internal/engine/ort"
)

// single is the part that families with one graph share.
type single struct {
	session *ort.Session
	source  ort.Source
	batch   bool // several windows may share a run
}

// open opens a graph without errors; outputs are the only ones that it computes.
func (s *single) open(g *checker, outputs ...string) error {
	if g.err != nil {
		return g.err
	}
	var err error
	s.session, err = ort.Open(s.source, ort.Options{Outputs: outputs})
	return err
}

func (s *single) batchable() bool     { return s.batch }
func (s *single) languages() []string { return nil }
func (s *single) close() error        { return s.session.Close() }

// ctcGraph is a graph with a CTC output [N,T',V].
type ctcGraph struct {
	single
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
