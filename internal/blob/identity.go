package blob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/gcerrors"
)

// Prefixes are those of the service's own files. Nothing else in a store is
// ever listed for deletion.
var Prefixes = []string{"audio/", "checkpoints/", "results/"}

// identityKey is the object that says which database a store belongs to. It
// lies outside of Prefixes.
const identityKey = "otograph-store.json"

// maxIdentity bounds the size of the identity object in bytes.
const maxIdentity = 4096

// Errors of a store that must not be used with the database at hand.
var (
	// ErrForeign says that the store belongs to another database.
	ErrForeign = errors.New("the file store belongs to another database")
	// ErrUnclaimed says that the store holds files, but nothing says whose.
	ErrUnclaimed = errors.New("the file store holds files of an unknown database")
	// ErrLost says that the database has files elsewhere.
	ErrLost = errors.New("the database's files are in another store")
)

// Identity names the database that a store belongs to.
type Identity struct {
	Database string    `json:"database"`        // the database's own id
	Place    string    `json:"place,omitempty"` // where the database lives: a copy of it has another place
	Written  time.Time `json:"written"`
}

func (i Identity) same(other Identity) bool {
	return i.Database == other.Database && i.Place == other.Place
}

// Identity returns the identity of the store, or an error that wraps
// ErrNotFound if none was written.
func (s *Store) Identity(ctx context.Context) (Identity, error) {
	r, err := s.Open(ctx, identityKey)
	if err != nil {
		return Identity{}, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxIdentity))
	if err != nil {
		return Identity{}, err
	}
	var found Identity
	if err := json.Unmarshal(text, &found); err != nil || found.Database == "" {
		return Identity{}, fmt.Errorf("file store %s: %s is not an identity: %.60q", s.name, identityKey, text)
	}
	return found, nil
}

// Claim checks that the store belongs to the database id. A store without an
// identity gets it, if it holds no files of a service and the database has no
// store yet (claimed is false). Errors wrap ErrForeign, ErrUnclaimed, or ErrLost;
// nothing was changed then.
func (s *Store) Claim(ctx context.Context, id Identity, claimed bool) error {
	found, err := s.Identity(ctx)
	if errors.Is(err, ErrNotFound) {
		if claimed {
			return fmt.Errorf("%w: %s has no identity, and this database has used a store before", ErrLost, s.name)
		}
		empty, err := s.empty(ctx)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("%w: %s has files under %v but no identity", ErrUnclaimed, s.name, Prefixes)
		}
		if err := s.writeIdentity(ctx, id, true); err != nil && gcerrors.Code(err) != gcerrors.FailedPrecondition {
			return err
		}
		found, err = s.Identity(ctx) // another server may have been faster
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	switch {
	case found.same(id):
		return nil
	case found.Database == id.Database:
		return fmt.Errorf("%w: %s belongs to the original of which this database is a copy (%s at %q, this one is at %q)", ErrForeign, s.name, id.Database, found.Place, id.Place)
	}
	return fmt.Errorf("%w: %s belongs to database %s since %s, this one is %s", ErrForeign, s.name, found.Database, found.Written.Format(time.DateOnly), id.Database)
}

// Adopt makes the store belong to the database id, whatever it belonged to
// before, and returns the identity that was replaced (zero for none).
func (s *Store) Adopt(ctx context.Context, id Identity) (before Identity, err error) {
	before, err = s.Identity(ctx)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Identity{}, err
	}
	return before, s.writeIdentity(ctx, id, false)
}

func (s *Store) writeIdentity(ctx context.Context, id Identity, fresh bool) error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	w, err := s.create(ctx, identityKey, fresh)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	_, err = w.Commit()
	return err
}

// errFound ends a listing at its first file.
var errFound = errors.New("found")

// empty reports whether the store holds no file under Prefixes.
func (s *Store) empty(ctx context.Context) (bool, error) {
	for _, prefix := range Prefixes {
		err := s.List(ctx, prefix, func(Object) error { return errFound })
		if errors.Is(err, errFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
