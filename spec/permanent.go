package spec

import "errors"

// permanent is an error that retrying doesn't fix.
type permanent struct{ err error }

func (p permanent) Error() string   { return p.err.Error() }
func (p permanent) Unwrap() error   { return p.err }
func (p permanent) Permanent() bool { return true }

// Permanent marks err as permanent, meaning that retrying doesn't fix it: bad
// input, a refused address, an account that can't pay. A nil err stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether err is permanent: it, or an error that it wraps,
// has a method Permanent() bool that is true, as Permanent's errors have.
func IsPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// ErrSlow marks audio that could not be decoded in the time for it. It is not
// permanent: the machine may be busy.
var ErrSlow = errors.New("decoding took too long")
