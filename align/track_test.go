package align

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/engine/ctc"
)

// lateGate lets work pass at the moment at which it is canceled.
type lateGate struct {
	cancel context.CancelFunc
	taken  int64
}

func (g *lateGate) Acquire(_ context.Context, n int64) error {
	g.taken += n
	g.cancel()
	return nil
}

func (g *lateGate) Release(n int64) { g.taken -= n }

// TestLayReturnsCores checks that a canceled alignment returns its cores.
func TestLayReturnsCores(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gate := &lateGate{cancel: cancel}
	vocab := ctc.NewVocabulary([]string{"", " a"}, 0)
	heard := []Recognition{{Rows: NewRows([]float32{0, -9, -9, 0}, []float64{0, 0}, 2, 0, 0.04)}}
	track := newTrack(heard, prepare([]string{"a"}, vocab), vocab)
	require.ErrorIs(t, track.lay(ctx, Options{Gate: gate}), context.Canceled)
	assert.Zero(t, gate.taken)
}
