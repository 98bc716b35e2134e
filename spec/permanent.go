package spec

import "errors"

// permanent is an error that trying again can't cure.
type permanent struct{ err error }

func (p permanent) Error() string   { return p.err.Error() }
func (p permanent) Unwrap() error   { return p.err }
func (p permanent) Permanent() bool { return true }

// Permanent marks err as one that trying again can't cure: bad input, a refused
// address, an account that can't pay. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether trying again can't cure err: it, or an error that it
// wraps, has a method Permanent() bool that says so, as those of Permanent have.
func IsPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
