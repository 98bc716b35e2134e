package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// loaded counts a model that is loaded.
type loaded struct {
	asr.Transcriber
	of  *watched
	use atomic.Int64
}

func (l *loaded) Close() error {
	if l.use.Load() != 0 {
		return errors.New("closed while it was used")
	}
	l.of.close(l)
	return nil
}

// watched is a model that counts its copies.
type watched struct {
	machine *machine
	model   models.Model
	copies  int
	loads   int
}

// machine counts the loaded models.
type machine struct {
	mu           sync.Mutex
	bytes, peak  int64
	twice, early bool
}

func (w *watched) open() (asr.Transcriber, error) {
	m := w.machine
	m.mu.Lock()
	w.copies++
	w.loads++
	m.twice = m.twice || w.copies > 1
	m.bytes += size(&w.model)
	m.peak = max(m.peak, m.bytes)
	m.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return &loaded{of: w}, nil
}

func (w *watched) close(l *loaded) {
	m := w.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	w.copies--
	m.early = m.early || l.use.Load() != 0
	m.bytes -= size(&w.model)
}

func three(m *machine) (list []*watched) {
	for i := range 3 {
		list = append(list, &watched{machine: m, model: models.Model{
			Role: models.RoleStandard, Name: fmt.Sprint(i), Files: []models.File{{Part: models.PartModel, Path: fmt.Sprint("/", i), Size: 100}},
		}})
	}
	return list
}

// TestAlternatingModels checks that requests that alternate between three
// models, with room for two, all succeed within the limit, and that no model is
// loaded twice at a time or freed in use.
func TestAlternatingModels(t *testing.T) {
	for _, atOnce := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{}
			list := three(m)
			p := newPool(Keeping{Memory: 250, Idle: time.Minute}, slog.New(slog.DiscardHandler))
			var answered atomic.Int64
			var wg sync.WaitGroup
			turns := make(chan struct{}, atOnce)
			for i := range 20 {
				wg.Go(func() {
					turns <- struct{}{}
					defer func() { <-turns }()
					l := &lease{slots: map[*slot]bool{}}
					defer p.end(l)
					w := list[i%3]
					for range 2 { // the run asks twice, in addition to the loading ahead
						value, err := p.get(t.Context(), l, &w.model, w.open)
						require.NoError(t, err)
						got := value.(*loaded)
						assert.Same(t, w, got.of)
						got.use.Add(1)
						time.Sleep(5 * time.Millisecond)
						got.use.Add(-1)
					}
					answered.Add(1)
				})
			}
			wg.Wait()
			assert.EqualValues(t, 20, answered.Load())
			time.Sleep(2 * time.Minute)
			m.mu.Lock()
			assert.False(t, m.twice, "loaded twice at a time")
			assert.False(t, m.early, "freed in use")
			assert.EqualValues(t, 200, m.peak)
			assert.Zero(t, m.bytes, "the idle ones are unloaded")
			m.mu.Unlock()
			require.NoError(t, p.Close())
		})
	}
}

// TestRunsThatNeedTwoRecognizers checks that runs that hold a recognizer exceed
// the limit instead of waiting for each other, and that a run gets none after
// its end.
func TestRunsThatNeedTwoRecognizers(t *testing.T) {
	m := &machine{}
	list := three(m)
	p := newPool(Keeping{Memory: 150}, slog.New(slog.DiscardHandler))
	l := &lease{slots: map[*slot]bool{}}
	for _, w := range list[:2] {
		_, err := p.get(t.Context(), l, &w.model, w.open)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 200, m.bytes)
	p.end(l)
	p.end(l)
	_, err := p.get(t.Context(), l, &list[2].model, list[2].open)
	require.ErrorIs(t, err, errEnded)
	broken := errors.New("broken")
	_, err = p.get(t.Context(), nil, &list[2].model, func() (asr.Transcriber, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	_, err = p.get(t.Context(), nil, &list[2].model, list[2].open)
	require.NoError(t, err, "a failure is not cached")
	assert.EqualValues(t, 100, m.bytes, "the two others made room")
	require.NoError(t, p.Close())
	assert.Zero(t, m.bytes)
}

// TestWaitEndsWithItsContext checks that a run that waits for memory stops when
// its context is done.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := three(&machine{})
		p := newPool(Keeping{Memory: 150}, slog.New(slog.DiscardHandler))
		holder, waiter := &lease{slots: map[*slot]bool{}}, &lease{slots: map[*slot]bool{}}
		_, err := p.get(t.Context(), holder, &list[0].model, list[0].open)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.get(ctx, waiter, &list[1].model, list[1].open)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, list[1].loads)
		p.end(waiter)
		p.end(holder)
		require.NoError(t, p.Close())
	})
}

// TestPanicWhileOpeningAModel checks that a panic while a model is opened
// passes the pool, and that the model can be opened afterwards.
func TestPanicWhileOpeningAModel(t *testing.T) {
	list := three(&machine{})
	p := newPool(Keeping{}, slog.New(slog.DiscardHandler))
	assert.PanicsWithValue(t, "damaged", func() {
		_, _ = p.get(t.Context(), nil, &list[0].model, func() (asr.Transcriber, error) { panic("damaged") })
	})
	_, err := p.get(t.Context(), nil, &list[0].model, list[0].open)
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

// TestNamedModels checks that a run selects a recognizer by its name, in its
// tier, and that models too large for the machine have no name.
func TestNamedModels(t *testing.T) {
	file := func(n int64) []models.File { return []models.File{{Part: models.PartModel, Size: n}} }
	set := &models.Set{Models: []models.Model{
		{Role: models.RoleStandard, Name: "base", Files: file(10)},
		{Role: models.RoleOptimized, Name: "ctc", Languages: []string{"en"}, Files: file(10)},
		{Role: models.RoleVAD, Name: "vad"},
	}}
	e := New(set, Options{Keep: Keeping{Memory: 100}, Choice: []models.Model{
		{Role: models.RoleStandard, Name: "base", Files: file(50)},
		{Role: models.RoleStandard, Name: "tiny.en", Languages: []string{"en"}, NoTranslation: true},
		{Role: models.RoleOptimized, Name: "ctc-fr", Languages: []string{"fr"}},
		{Role: models.RoleStandard, Name: "large", Files: file(1000)},
	}})
	var names []string
	for _, m := range e.Available.Models {
		names = append(names, m.Name)
	}
	assert.Equal(t, []string{"base", "ctc", "tiny.en", "ctc-fr"}, names)
	_, err := e.Lease("large")
	require.ErrorContains(t, err, "not in the model folder")
	for name, want := range map[string][]any{
		"":       {spec.TierOptimized, "ctc", "base"},
		"base":   {spec.TierStandard, "base", "base"},
		"ctc-fr": {spec.TierStandard, "base", "base"},
	} {
		run, err := e.Lease(name)
		require.NoError(t, err)
		tier := spec.Route("en", spec.Options{}, run.Available)
		standard, _ := run.Set.Role(models.RoleStandard)
		assert.Equal(t, want, []any{tier, run.Model(tier, "en").Name, standard.Name}, name)
		_, hasVAD := run.Set.Role(models.RoleVAD)
		assert.True(t, hasVAD)
		run.End()
	}
	run, err := e.Lease("tiny.en")
	require.NoError(t, err)
	assert.Equal(t, spec.Available{Standard: true, StandardLanguages: []string{"en"}, Models: e.Available.Models}, run.Available)
	run, err = e.Lease("ctc-fr")
	require.NoError(t, err)
	assert.Equal(t, spec.TierOptimized, spec.Route("fr", spec.Options{}, run.Available))
	assert.Equal(t, "ctc-fr", run.Model(spec.TierOptimized, "fr").Name)
}
