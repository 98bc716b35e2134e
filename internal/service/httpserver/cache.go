package httpserver

import (
	"context"
	"sync"
	"time"
)

// maxCached limits the values of a cache.
const maxCached = 100_000

// cache holds loaded values for a time.
type cache[V any] struct {
	age     time.Duration
	load    func(ctx context.Context, key string) (V, error)
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]cached[V]
}

type cached[V any] struct {
	value V
	at    time.Time
}

func newCache[V any](age time.Duration, load func(ctx context.Context, key string) (V, error)) *cache[V] {
	return &cache[V]{age: age, load: load, now: time.Now, entries: map[string]cached[V]{}}
}

func (c *cache[V]) get(ctx context.Context, key string) (V, error) {
	c.mu.Lock()
	k, ok := c.entries[key]
	c.mu.Unlock()
	if age := c.now().Sub(k.at); ok && age >= 0 && age < c.age {
		return k.value, nil
	}
	value, err := c.load(ctx, key)
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxCached {
		clear(c.entries)
	}
	c.entries[key] = cached[V]{value, c.now()}
	return value, nil
}
