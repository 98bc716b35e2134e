package stages

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/spec"
)

// single is a store whose methods must not run concurrently.
type single struct {
	data  map[string][]byte
	calls atomic.Int32
	twice atomic.Bool
}

func (s *single) enter() func() {
	if s.calls.Add(1) > 1 {
		s.twice.Store(true)
	}
	runtime.Gosched()
	return func() { s.calls.Add(-1) }
}

func (s *single) Load(_ context.Context, stage string) ([]byte, error) {
	defer s.enter()()
	return s.data[stage], nil
}

func (s *single) Save(_ context.Context, stage string, data []byte) error {
	defer s.enter()()
	s.data[stage] = data
	return nil
}

// TestCheckpointsAreCalledOneAtATime runs stages in parallel, as a run does.
func TestCheckpointsAreCalledOneAtATime(t *testing.T) {
	store := &single{data: map[string][]byte{}}
	w := &Watch{Checkpoints: store}
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			for k := range 200 {
				stage := spec.Stage(strconv.Itoa(i) + "-" + strconv.Itoa(k/2))
				got, err := checkpoint(w, stage, func(context.Context) (int, error) { return k / 2, nil })(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, k/2, got)
			}
		})
	}
	g.Wait()
	assert.False(t, store.twice.Load())
	assert.Len(t, store.data, 800)
}
