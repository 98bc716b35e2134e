package httpserver

import (
	"sync"
)

// uploads limits the concurrent uploads of one account. Bodies of at most
// maxSmallBody bytes are not counted.
type uploads struct {
	most  int   // bodies
	bytes int64 // by their Content-Length; a body without one counts as the largest

	mu sync.Mutex
	by map[string]inFlight
}

type inFlight struct {
	n     int
	bytes int64
}

func newUploads(most int, bytes int64) *uploads {
	return &uploads{most: most, bytes: bytes, by: map[string]inFlight{}}
}

// enter counts a body of size bytes, or returns false if the account already
// sends enough. A first body is never refused.
func (u *uploads) enter(account string, size int64) (leave func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.by[account]
	if now.n > 0 && (now.n >= u.most || now.bytes+size > u.bytes) {
		return nil, false
	}
	u.by[account] = inFlight{now.n + 1, now.bytes + size}
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := u.by[account]
		if now = (inFlight{now.n - 1, now.bytes - size}); now.n == 0 {
			delete(u.by, account)
			return
		}
		u.by[account] = now
	}), true
}

// admit refuses a body with audio before a byte of it is read: if its announced
// size exceeds max, if the account cannot pay for the shortest task, or if it
// sends too much at the same time. The caller calls leave when the body has
// been read.
func (s *Server) admit(r *request, max int64) (leave func(), err error) {
	size := r.ContentLength
	if size > max {
		return nil, tooLarge(max)
	}
	if size >= 0 && size <= maxSmallBody {
		return func() {}, nil
	}
	// A used idempotency key gets its first response regardless of the balance.
	if err := s.cfg.Tasks.Admit(r.Context(), r.who.Account, r.Header.Get("Idempotency-Key")); err != nil {
		return nil, err
	}
	if size < 0 {
		size = max
	}
	leave, ok := s.uploads.enter(r.who.Account, size)
	if !ok {
		return nil, rateLimited(1, "too many concurrent uploads for this account: wait for one to finish")
	}
	return leave, nil
}
