package host

import "errors"

// ErrLocked is returned by TryLock if another process holds the lock.
var ErrLocked = errors.New("locked by another process")
