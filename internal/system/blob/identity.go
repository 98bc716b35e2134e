package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Prefixes are the only prefixes whose files are ever listed for deletion.
var Prefixes = []string{"audio/", "checkpoints/", "results/"}

// identityKey is the object, outside Prefixes, that names the store's database.
const identityKey = "otograph-store.json"

const maxIdentity = 4096

// Errors for a store that must not be used with the current database.
var (
	// ErrForeign is returned if the store belongs to another database.
	ErrForeign = errors.New("the file store belongs to another database")
	// ErrUnclaimed is returned if the store holds files of an unknown database.
	ErrUnclaimed = errors.New("the file store contains files of an unknown database")
	// ErrLost is returned if the database's files are in another store.
	ErrLost = errors.New("the database's files are in another store")
)

// Identity identifies the database of a store.
type Identity struct {
	Database string    `json:"database"`        // the database's id
	Place    string    `json:"place,omitempty"` // location of the database, which differs for a copy
	Written  time.Time `json:"written"`
}

// Identity returns the identity of the store, or an error that wraps
// ErrNotFound if it has none.
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
	var owner Identity
	if err := json.Unmarshal(text, &owner); err != nil || owner.Database == "" {
		return Identity{}, fmt.Errorf("file store %s: %s is not an identity: %.60q", s.name, identityKey, text)
	}
	return owner, nil
}

// Claim checks that the store belongs to the database id. It assigns id to a
// store without an identity, if the store holds no files of a service and the
// database has no store yet (claimed is false). Errors wrap ErrForeign,
// ErrUnclaimed, or ErrLost; nothing was changed then.
func (s *Store) Claim(ctx context.Context, id Identity, claimed bool) error {
	owner, err := s.Identity(ctx)
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
		if err := s.writeIdentity(ctx, id, true); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		owner, err = s.Identity(ctx) // another server may have been faster
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	switch {
	case owner.Database == id.Database && owner.Place == id.Place:
		return nil
	case owner.Database == id.Database:
		return fmt.Errorf("%w: %s belongs to the original of which this database is a copy (%s at %q, this one is at %q)", ErrForeign, s.name, id.Database, owner.Place, id.Place)
	}
	return fmt.Errorf("%w: %s belongs to database %s since %s, this one is %s", ErrForeign, s.name, owner.Database, owner.Written.Format(time.DateOnly), id.Database)
}

// Adopt assigns the store to the database id, even if it belonged to another
// database, and returns the replaced identity (zero for none).
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
	return s.put(ctx, identityKey, bytes.NewReader(append(text, '\n')), fresh)
}

var errNotEmpty = errors.New("not empty")

// empty reports whether the store holds no file under Prefixes.
func (s *Store) empty(ctx context.Context) (bool, error) {
	for _, prefix := range Prefixes {
		err := s.List(ctx, prefix, func(Object) error { return errNotEmpty })
		if errors.Is(err, errNotEmpty) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
