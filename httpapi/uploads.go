package httpapi

import (
	"errors"
	"sync"

	"github.com/otograph/otograph/billing"
)

// uploads bounds what one account sends at the same time. Bodies of at most
// maxSmallBody bytes are not counted.
type uploads struct {
	most  int   // bodies
	bytes int64 // announced by their Content-Length; those without count as the largest body

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

// enter counts a body of size bytes, or reports that the account sends enough
// already. A first body is never refused.
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

// admit refuses a body with audio before a byte of it is read: when it is
// announced as larger than max, when the account cannot pay for the shortest
// task, and when it sends too much at the same time. The caller calls leave when
// the body is read.
func (s *Server) admit(r *request, max int64) (leave func(), err error) {
	size := r.ContentLength
	if size > max {
		return nil, tooLarge(max)
	}
	if size >= 0 && size <= maxSmallBody {
		return func() {}, nil
	}
	// An idempotency key that was used gets its first answer, whatever the balance is now.
	err = s.cfg.Money.Solvent(r.Context(), r.who.Account)
	if errors.Is(err, billing.ErrInsufficientBalance) {
		used, failed := s.keyUsed(r)
		if used || failed != nil {
			err = failed
		}
	}
	if err != nil {
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

// keyUsed reports whether the request has an idempotency key that the account has
// used.
func (s *Server) keyUsed(r *request) (bool, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		return false, nil
	}
	return s.cfg.Tasks.KeyUsed(r.Context(), r.who.Account, key)
}
