package fairuse

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) { outside.Main(m) }

// waitFor polls until n callers wait at g.
func waitFor(t *testing.T, g *Gate, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.waiting == n
	}, 10*time.Second, time.Millisecond)
}

// TestKeysTakeTurns checks that a key with one caller is served after one call
// of a key with many.
func TestKeysTakeTurns(t *testing.T) {
	g := NewGate(1, 1, 100)
	leave, err := g.Enter(t.Context(), "greedy")
	require.NoError(t, err)
	order := make(chan string, 100)
	var wg sync.WaitGroup
	enter := func(key string) {
		wg.Go(func() {
			leave, err := g.Enter(context.Background(), key)
			if assert.NoError(t, err) {
				order <- key
				leave()
			}
		})
	}
	for i := range 10 {
		enter("greedy")
		waitFor(t, g, i+1)
	}
	enter("modest")
	waitFor(t, g, 11)
	leave()
	leave() // more often changes nothing
	wg.Wait()
	assert.Equal(t, "greedy", <-order)
	assert.Equal(t, "modest", <-order)
	assert.Empty(t, g.keys)
	assert.Empty(t, g.ring)
	assert.Zero(t, g.taken)
}

func TestAKeyCannotTakeAllPlaces(t *testing.T) {
	g := NewGate(2, 1, 1)
	first, err := g.Enter(t.Context(), "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := g.Enter(ctx, "a")
		gone <- err
	}()
	waitFor(t, g, 1)
	other, err := g.Enter(t.Context(), "b")
	require.NoError(t, err, "the other key's place is free")
	_, err = g.Enter(t.Context(), "c")
	assert.ErrorIs(t, err, ErrFull)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	first()
	other()
	_, err = g.Enter(ctx, "a")
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, g.keys)
}

// TestGateInvariants checks that the limits hold and nothing is left over,
// whichever callers arrive, leave or are canceled.
func TestGateInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places, perKey := rapid.IntRange(1, 4).Draw(t, "places"), rapid.IntRange(1, 4).Draw(t, "per key")
		g := NewGate(places, perKey, 1000)
		var mu sync.Mutex
		held, most := map[string]int{}, map[string]int{}
		total, worst := 0, 0
		var wg sync.WaitGroup
		for i := range rapid.IntRange(1, 60).Draw(t, "callers") {
			key := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key"))
			patience := time.Duration(rapid.IntRange(0, 300).Draw(t, "patience")) * time.Microsecond
			hold := time.Duration(i%5) * 20 * time.Microsecond
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				leave, err := g.Enter(ctx, key)
				if err != nil {
					return
				}
				mu.Lock()
				held[key]++
				total++
				most[key], worst = max(most[key], held[key]), max(worst, total)
				mu.Unlock()
				time.Sleep(hold)
				mu.Lock()
				held[key]--
				total--
				mu.Unlock()
				leave()
			})
		}
		wg.Wait()
		if worst > places {
			t.Fatalf("%d places were taken, there are %d", worst, places)
		}
		for key, n := range most {
			if n > perKey {
				t.Fatalf("key %s held %d places, %d are allowed", key, n, perKey)
			}
		}
		if len(g.keys) > 0 || len(g.ring) > 0 || g.taken != 0 || g.waiting != 0 {
			t.Fatalf("left behind: %+v", g)
		}
	})
}
