package accounts

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/voices"
)

// Limits of an account's voices.
const (
	// MaxVoices is the largest number of voices of an account.
	MaxVoices = 200
	// MaxVectors limits the stored recordings of a voice, and its denials.
	MaxVectors = 20
)

// Errors of voices.
var (
	// ErrTooManyVoices is returned if the account has MaxVoices voices (409).
	ErrTooManyVoices = errors.New("too many voices")
	// ErrNoVoice is returned when the voice does not exist (HTTP 404).
	ErrNoVoice = errors.New("voice does not exist")
)

// Voice is a known voice of an account, without its vectors.
type Voice struct {
	ID         string // UUID
	Name       string
	Model      string // SHA-256 of the speaker model's file
	Consent    string // the person's agreement and its date
	Recordings int    // vectors
	Denied     int    // vectors of others who had the name by mistake
	AddedAt    time.Time
}

// AddVoice stores a voice. If the account has vectors of that name, in any case,
// from the same speaker model, new vectors are added to them, and the newer
// consent replaces the older one. Errors wrap voices.ErrVoice or
// ErrTooManyVoices.
func (s *Store) AddVoice(ctx context.Context, account string, v voices.Voice) (Voice, error) {
	v.Added = db.Time(db.Micros(s.clock()))
	return s.changeVoices(ctx, account, "add voice", func(*sql.Tx, *lockedVoices) (voices.Voice, error) { return v, nil })
}

// MergeVoice adds the recordings of the account's voice id to the voice that v
// names, with v's consent, and deletes the voice id. Errors wrap ErrNoVoice,
// voices.ErrVoice or ErrTooManyVoices; nothing is changed then.
func (s *Store) MergeVoice(ctx context.Context, account, id string, v voices.Voice) (Voice, error) {
	v.Added = db.Time(db.Micros(s.clock()))
	stored, err := s.changeVoices(ctx, account, "merge voices", func(tx *sql.Tx, l *lockedVoices) (voices.Voice, error) {
		i := slices.Index(l.ids, id)
		if i < 0 {
			return v, fmt.Errorf("%w: %.40q", ErrNoVoice, id)
		}
		other := l.Voices[i]
		if l.Find(v.Name, other.Model) == i {
			return v, fmt.Errorf("%w: voice_id: must be another voice than that of the name", voices.ErrVoice)
		}
		v.Model, v.Vectors, v.Denied = other.Model, other.Vectors, other.Denied
		l.ids, l.Voices = slices.Delete(l.ids, i, i+1), slices.Delete(l.Voices, i, i+1)
		return v, db.Do(ctx, tx, "DELETE FROM voices WHERE id = $1 AND account_id = $2", id, account)
	})
	if err == nil {
		s.unfolded.Store(true)
	}
	return stored, err
}

// DenyVoice records that v's only vector belongs to another person than v
// names, so that voices.Register.Identify no longer takes that person for this
// one. Errors wrap ErrNoVoice or voices.ErrVoice.
func (s *Store) DenyVoice(ctx context.Context, account string, v voices.Voice) (Voice, error) {
	return s.changeVoices(ctx, account, "deny voice", func(_ *sql.Tx, l *lockedVoices) (voices.Voice, error) {
		i := l.Find(v.Name, v.Model)
		if i < 0 {
			return v, fmt.Errorf("%w: %.40q", ErrNoVoice, v.Name)
		}
		entry, denied := l.Voices[i], slices.Clone(v.Vectors[0])
		voices.Normalize(denied) // like Add, which refuses a zero vector
		defer clear(denied)
		if slices.ContainsFunc(entry.Vectors, func(x []float32) bool { return slices.Equal(x, denied) }) {
			return v, fmt.Errorf("%w: speaker: is one of the recordings of the voice: delete it and add the others again", voices.ErrVoice)
		}
		entry.Denied = v.Vectors
		return entry, nil
	})
}

// lockedVoices are the voices of an account, with their ids, during a change.
type lockedVoices struct {
	ids []string
	*voices.Register
}

// changeVoices stores the voice that change returns with the account's voices.
func (s *Store) changeVoices(ctx context.Context, account, what string, change func(*sql.Tx, *lockedVoices) (voices.Voice, error)) (stored Voice, err error) {
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		var locked string
		if err := tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1"+s.db.ForUpdate(), account).Scan(&locked); err != nil {
			return err
		}
		if err := Permitted(ctx, tx, s.clock(), account, ""); err != nil { // it may have been deleted while the body came
			return err
		}
		ids, register, err := readVoices(ctx, tx, account)
		defer register.Clear()
		if err != nil {
			return err
		}
		defer (&voices.Register{Voices: slices.Clone(register.Voices)}).Clear()
		list := &lockedVoices{ids, register}
		v, err := change(tx, list)
		if err == nil {
			stored, err = list.add(ctx, tx, account, v)
		}
		return err
	})
	if err != nil {
		return Voice{}, s.wrap(what, err)
	}
	s.log.InfoContext(ctx, what, "account", account, "voice", stored.ID, "recordings", stored.Recordings, "denied", stored.Denied)
	return stored, nil
}

// add adds a voice and writes its entry.
func (l *lockedVoices) add(ctx context.Context, tx *sql.Tx, account string, v voices.Voice) (Voice, error) {
	entry, err := l.Add(v)
	switch {
	case err != nil:
		return Voice{}, err
	case len(l.Voices) > len(l.ids) && len(l.ids) >= MaxVoices:
		return Voice{}, fmt.Errorf("%w: the account already has %d: delete one first", ErrTooManyVoices, len(l.ids))
	case max(len(entry.Vectors), len(entry.Denied)) > MaxVectors:
		return Voice{}, fmt.Errorf("%w: vectors: the voice would have %d, and %d denied ones, and the limit is %d: delete it and add it again", voices.ErrVoice, len(entry.Vectors), len(entry.Denied), MaxVectors)
	}
	out := Voice{db.NewID(), entry.Name, entry.Model, entry.Consent, len(entry.Vectors), len(entry.Denied), v.Added}
	if i := l.Find(out.Name, out.Model); i < len(l.ids) {
		out.ID = l.ids[i]
	}
	vectors, denied := packVectors(entry.Vectors), packVectors(entry.Denied)
	defer clear(vectors)
	defer clear(denied)
	return out, db.Do(ctx, tx, `INSERT INTO voices (id, account_id, name, model, consent, dimension, vectors, denied, added_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (id) DO UPDATE SET consent = excluded.consent, vectors = excluded.vectors, denied = excluded.denied, added_at = excluded.added_at`,
		out.ID, account, out.Name, out.Model, out.Consent, len(entry.Vectors[0]), vectors, denied, db.Micros(v.Added))
}

// Voices returns the known voices of an account, ordered by name.
func (s *Store) Voices(ctx context.Context, account string) ([]Voice, error) {
	list, err := db.Select(ctx, s.db.Read(), func(row db.Row, v *Voice) error {
		var dimension, size, denied int
		err := row.Scan(&v.ID, &v.Name, &v.Model, &v.Consent, &dimension, &size, &denied, db.ScanTime(&v.AddedAt))
		v.Recordings, v.Denied = size/max(4*dimension, 1), denied/max(4*dimension, 1)
		return err
	}, "SELECT id, name, model, consent, dimension, length(vectors), length(denied), added_at FROM voices WHERE account_id = $1 ORDER BY name, id", account)
	return list, s.wrap("voices", err)
}

// DeleteVoice deletes a voice of an account, or returns ErrNoVoice.
func (s *Store) DeleteVoice(ctx context.Context, account, id string) error {
	n, err := s.db.Exec(ctx, "DELETE FROM voices WHERE id = $1 AND account_id = $2", id, account)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %.40q", ErrNoVoice, id)
	}
	if err != nil {
		return s.wrap("delete voice", err)
	}
	s.log.InfoContext(ctx, "voice deleted", "account", account, "voice", id)
	s.unfolded.Store(true)
	if err := s.FoldVoices(context.WithoutCancel(ctx)); err != nil {
		s.log.InfoContext(ctx, "a deleted voice stays in the database's write-ahead log until the clean-up folds it", "voice", id, "error", err)
	}
	return nil
}

// FoldVoices empties SQLite's write-ahead log if it may hold deleted voices.
func (s *Store) FoldVoices(ctx context.Context) error {
	if !s.unfolded.Swap(false) {
		return nil
	}
	err := s.db.Forget(ctx)
	if err != nil {
		s.unfolded.Store(true)
	}
	return s.wrap("fold the write-ahead log", err)
}

// Register returns the voices of an account with their vectors, ordered by name.
// The caller clears it afterwards.
func (s *Store) Register(ctx context.Context, account string) (*voices.Register, error) {
	_, register, err := readVoices(ctx, s.db.Read(), account)
	return register, s.wrap("read voices", err)
}

// readVoices returns the voices of an account with their ids, ordered by name.
func readVoices(ctx context.Context, from db.Querier, account string) (ids []string, register *voices.Register, err error) {
	register = &voices.Register{}
	register.Voices, err = db.Select(ctx, from, func(row db.Row, v *voices.Voice) error {
		var id string
		var dimension int
		var vectors, denied onlyCopy
		err := row.Scan(&id, &v.Name, &v.Model, &v.Consent, &dimension, &vectors, &denied, db.ScanTime(&v.Added))
		defer clear(vectors)
		defer clear(denied)
		ids = append(ids, id)
		if err == nil {
			v.Vectors, err = unpackVectors(vectors, dimension)
		}
		if err == nil && len(denied) > 0 {
			v.Denied, err = unpackVectors(denied, dimension)
		}
		return err
	}, "SELECT id, name, model, consent, dimension, vectors, denied, added_at FROM voices WHERE account_id = $1 ORDER BY name, id", account)
	return ids, register, err
}

// onlyCopy scans bytes from a row and overwrites the driver's copy of them,
// which database/sql would copy and leave in memory.
type onlyCopy []byte

// Scan implements sql.Scanner.
func (c *onlyCopy) Scan(src any) error {
	data, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("a voice's vectors: expected bytes, found %T", src)
	}
	*c = append(onlyCopy(nil), data...)
	clear(data)
	return nil
}

func packVectors(vectors [][]float32) []byte {
	flat := slices.Concat(vectors...)
	defer clear(flat)
	out := make([]byte, 4*len(flat)) // not appended to, so that the caller can clear it
	_, _ = binary.Encode(out, binary.LittleEndian, flat)
	return out
}

func unpackVectors(data []byte, dimension int) ([][]float32, error) {
	if dimension <= 0 || len(data) == 0 || len(data)%(4*dimension) != 0 {
		return nil, fmt.Errorf("a voice's vectors: expected some of %d numbers, found %d bytes", dimension, len(data))
	}
	vectors := make([][]float32, 0, len(data)/(4*dimension))
	for part := range slices.Chunk(data, 4*dimension) {
		x := make([]float32, dimension)
		_, _ = binary.Decode(part, binary.LittleEndian, x)
		vectors = append(vectors, x)
	}
	return vectors, nil
}
