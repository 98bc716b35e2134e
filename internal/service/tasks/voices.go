package tasks

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/spec"
)

// Limits of an account's voices.
const (
	// MaxVoices is the largest number of voices of an account.
	MaxVoices = 200
	// MaxVoiceVectors is the largest number of recordings kept of a voice.
	MaxVoiceVectors    = 20
	maxVoiceNameLen    = maxAnnotationKey // characters: the name replaces a speaker's
	maxVoiceConsentLen = 1000             // characters: the limit of a register
	maxVoiceNumbers    = 1024             // of a vector
)

// Errors of voices.
var (
	// ErrVoice is returned for a voice that can't be stored (HTTP 400).
	ErrVoice = errors.New("voice not accepted")
	// ErrVoices is returned when the account has reached its limit of voices
	// (HTTP 409).
	ErrVoices = errors.New("too many voices")
	// ErrNoVoice is returned when the voice does not exist (HTTP 404).
	ErrNoVoice = errors.New("voice does not exist")
	// ErrNoVector is returned when a task's result has no usable vector of the
	// speaker (HTTP 409).
	ErrNoVector = errors.New("the voice cannot be taken from this task")
)

// Voice is a known voice of an account, without its vectors.
type Voice struct {
	ID         string // UUID
	Name       string
	Model      string // SHA-256 of the speaker model's file
	Consent    string // the person's agreement and its date
	Recordings int    // vectors
	AddedAt    time.Time
}

// speakerName matches the names that results assign to unknown speakers.
var speakerName = regexp.MustCompile(`(?i)^(SPEAKER|CHANNEL)_[0-9]+$`)

var modelHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// AddVoice stores a voice. If the account has vectors of that name from the
// same speaker model, new vectors are added to them, and the newer consent
// replaces the older one. Errors wrap ErrVoice or ErrVoices.
func (s *Service) AddVoice(ctx context.Context, account string, v diarize.Voice) (Voice, error) {
	v.Name, v.Added = strings.TrimSpace(v.Name), s.now()
	if err := checkVoice(v); err != nil {
		return Voice{}, err
	}
	var kept Voice
	err := s.DB.Write(ctx, func(tx *sql.Tx) (err error) {
		kept, err = s.addVoice(ctx, tx, account, v)
		return err
	})
	if err != nil {
		return Voice{}, s.wrap("voice", err)
	}
	s.Logger.InfoContext(ctx, "voice kept", "account", account, "voice", kept.ID, "recordings", kept.Recordings)
	return kept, nil
}

// checkVoice validates a voice without the database. Errors wrap ErrVoice and
// name the field.
func checkVoice(v diarize.Voice) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrVoice, fmt.Sprintf(format, args...))
	}
	switch {
	case !shortText(v.Name, maxVoiceNameLen):
		return bad("name: must be 1 to %d printable characters", maxVoiceNameLen)
	case speakerName.MatchString(v.Name):
		return bad("name: %q is reserved for speakers without a known voice", spec.Shorten(v.Name))
	case strings.TrimSpace(v.Consent) == "" || !shortText(v.Consent, maxVoiceConsentLen):
		return bad("consent: must be a note of 1 to %d printable characters: what the person agreed to, and when", maxVoiceConsentLen)
	case !modelHash.MatchString(v.Model):
		return bad("model: must be the SHA-256 of the speaker model's file, 64 of the digits 0-9 and a-f, not %q", spec.Shorten(v.Model))
	case len(v.Vectors) == 0 || len(v.Vectors) > MaxVoiceVectors:
		return bad("vectors: must be 1 to %d, found %d", MaxVoiceVectors, len(v.Vectors))
	}
	for i, x := range v.Vectors {
		if len(x) == 0 || len(x) > maxVoiceNumbers {
			return bad("vectors: number %d must have 1 to %d numbers, found %d", i+1, maxVoiceNumbers, len(x))
		}
	}
	var alone diarize.Register
	defer ForgetVoices(&alone)
	if err := alone.Add(v); err != nil {
		return bad("vectors: must all have %d finite numbers that are not all zero", len(v.Vectors[0]))
	}
	return nil
}

// shortText reports whether a text has 1 to most characters, none of them a
// control character.
func shortText(text string, most int) bool {
	n := utf8.RuneCountInString(text)
	return n >= 1 && n <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// addVoice writes a voice that checkVoice accepted.
func (s *Service) addVoice(ctx context.Context, tx *sql.Tx, account string, v diarize.Voice) (Voice, error) {
	var found string // the account's row is the lock under which its voices are counted
	if err := tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1"+s.DB.ForUpdate(), account).Scan(&found); err != nil {
		return Voice{}, err
	}
	if err := checkDimension(ctx, tx, account, v); err != nil {
		return Voice{}, err
	}
	var register diarize.Register
	defer ForgetVoices(&register)
	old, err := readVoice(tx.QueryRowContext(ctx, selectVoices+" AND name = $2 AND model = $3", account, v.Name, v.Model))
	switch {
	case err == nil:
		register.Voices = []diarize.Voice{old.Voice}
	case !errors.Is(err, sql.ErrNoRows):
		return Voice{}, err
	default:
		if err := roomForVoice(ctx, tx, account); err != nil {
			return Voice{}, err
		}
		old.id = db.NewID()
	}
	if err := register.Add(v); err != nil {
		return Voice{}, fmt.Errorf("%w: %s", ErrVoice, strings.TrimPrefix(err.Error(), diarize.ErrRegister.Error()+": "))
	}
	v = register.Voices[0]
	v.Vectors = distinct(v.Vectors)
	if len(v.Vectors) > MaxVoiceVectors {
		return Voice{}, fmt.Errorf("%w: vectors: the voice would have %d, and the limit is %d: delete it and add it again", ErrVoice, len(v.Vectors), MaxVoiceVectors)
	}
	vectors := packVectors(v.Vectors)
	defer clear(vectors)
	_, err = tx.ExecContext(ctx, `INSERT INTO voices (id, account_id, name, model, consent, dimension, vectors, added_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (id) DO UPDATE SET consent = excluded.consent, vectors = excluded.vectors, added_at = excluded.added_at`,
		old.id, account, v.Name, v.Model, v.Consent, len(v.Vectors[0]), vectors, db.Micros(v.Added))
	return Voice{ID: old.id, Name: v.Name, Model: v.Model, Consent: v.Consent, Recordings: len(v.Vectors), AddedAt: v.Added}, err
}

// distinct returns vectors without duplicates, so that a repeated request adds
// nothing.
func distinct(vectors [][]float32) (out [][]float32) {
	for _, x := range vectors {
		if !slices.ContainsFunc(out, func(y []float32) bool { return slices.Equal(x, y) }) {
			out = append(out, x)
		}
	}
	return out
}

// roomForVoice checks that an account may have one more voice.
func roomForVoice(ctx context.Context, tx *sql.Tx, account string) error {
	var count int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM voices WHERE account_id = $1", account).Scan(&count); err != nil {
		return err
	}
	if count >= MaxVoices {
		return fmt.Errorf("%w: the account already has %d: delete one first", ErrVoices, count)
	}
	return nil
}

// checkDimension checks that vectors are as long as the account's other vectors
// of the same model.
func checkDimension(ctx context.Context, tx *sql.Tx, account string, v diarize.Voice) error {
	var dimension int
	found, err := db.Found(tx.QueryRowContext(ctx, "SELECT dimension FROM voices WHERE account_id = $1 AND model = $2 LIMIT 1", account, v.Model).Scan(&dimension))
	if found && dimension != len(v.Vectors[0]) {
		err = fmt.Errorf("%w: vectors: those of this model have %d numbers, found %d", ErrVoice, dimension, len(v.Vectors[0]))
	}
	return err
}

// RememberSpeaker stores the voice of a speaker of a done task's result. Errors
// wrap ErrNotFound, ErrForbidden, ErrNotDone, ErrNoVector, ErrVoice or
// ErrVoices.
func (s *Service) RememberSpeaker(ctx context.Context, account, task, speaker, name, consent string) (Voice, error) {
	r, err := s.Result(ctx, account, task)
	if err != nil {
		return Voice{}, err
	}
	defer r.Close()
	var model sql.NullString
	err = s.DB.Read().QueryRowContext(ctx, "SELECT voice_model FROM tasks WHERE id = $1", task).Scan(&model)
	if errors.Is(err, sql.ErrNoRows) { // deleted at this moment
		err = fmt.Errorf("%w: %.40q", ErrNotFound, task)
	}
	if err != nil {
		return Voice{}, s.wrap("voice", err)
	}
	if !model.Valid {
		return Voice{}, fmt.Errorf("%w: it ran without diarization", ErrNoVector)
	}
	speakers := r.Found.SpeakerEmbeddings
	defer func() {
		for _, e := range speakers {
			clear(e.Embedding)
		}
	}()
	i := slices.IndexFunc(speakers, func(e spec.SpeakerEmbedding) bool { return e.SpeakerID == speaker })
	if i < 0 {
		return Voice{}, fmt.Errorf("%w: speaker: there is no %q in the task's speaker_embeddings", ErrVoice, spec.Shorten(speaker))
	}
	vector := speakers[i].Embedding
	return s.AddVoice(ctx, account, diarize.Voice{Name: name, Model: model.String, Consent: consent, Vectors: [][]float32{vector}})
}

// Voices returns the known voices of an account, ordered by name.
func (s *Service) Voices(ctx context.Context, account string) ([]Voice, error) {
	list, err := db.Select(ctx, s.DB.Read(), func(rows *sql.Rows, v *Voice) error {
		var dimension, size int
		var added int64
		err := rows.Scan(&v.ID, &v.Name, &v.Model, &v.Consent, &dimension, &size, &added)
		v.Recordings, v.AddedAt = size/max(4*dimension, 1), db.Time(added)
		return err
	}, "SELECT id, name, model, consent, dimension, length(vectors), added_at FROM voices WHERE account_id = $1 ORDER BY name, id", account)
	return list, s.wrap("voices", err)
}

// DeleteVoice deletes a voice of an account. The error wraps ErrNoVoice if the
// account has no such voice.
func (s *Service) DeleteVoice(ctx context.Context, account, id string) error {
	n, err := s.DB.Exec(ctx, "DELETE FROM voices WHERE id = $1 AND account_id = $2", id, account)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %.40q", ErrNoVoice, id)
	}
	if err != nil {
		return s.wrap("voice", err)
	}
	s.Logger.InfoContext(ctx, "voice deleted", "account", account, "voice", id)
	s.unfolded.Store(true)
	if err := s.fold(context.WithoutCancel(ctx)); err != nil {
		s.Logger.InfoContext(ctx, "a deleted voice stays in the database's write-ahead log until the clean-up folds it", "voice", id, "error", err)
	}
	return nil
}

// fold empties SQLite's write-ahead log if it may hold deleted data.
func (s *Service) fold(ctx context.Context) error {
	if !s.unfolded.Swap(false) {
		return nil
	}
	err := s.DB.Forget(ctx)
	if err != nil {
		s.unfolded.Store(true)
	}
	return s.wrap("fold the write-ahead log", err)
}

// KnownVoices returns the voices of an account with their vectors, for a run.
// The caller clears them afterwards with ForgetVoices.
func (s *Service) KnownVoices(ctx context.Context, account string) (*diarize.Register, error) {
	list, err := db.Select(ctx, s.DB.Read(), func(rows *sql.Rows, v *storedVoice) (err error) {
		*v, err = readVoice(rows)
		return err
	}, selectVoices+" ORDER BY name, id", account)
	register := &diarize.Register{}
	for _, v := range list {
		register.Voices = append(register.Voices, v.Voice)
	}
	return register, s.wrap("voices", err)
}

// ForgetVoices overwrites the vectors of a register.
func ForgetVoices(r *diarize.Register) {
	if r == nil {
		return
	}
	for _, v := range r.Voices {
		for _, x := range v.Vectors {
			clear(x)
		}
	}
}

type storedVoice struct {
	diarize.Voice
	id string
}

const selectVoices = "SELECT id, name, model, consent, dimension, vectors, added_at FROM voices WHERE account_id = $1"

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

func readVoice(row scanner) (v storedVoice, err error) {
	var dimension int
	var vectors onlyCopy
	var added int64
	if err := row.Scan(&v.id, &v.Name, &v.Model, &v.Consent, &dimension, &vectors, &added); err != nil {
		return v, err
	}
	v.Added = db.Time(added)
	v.Vectors, err = unpackVectors(vectors, dimension)
	clear(vectors)
	return v, err
}

func packVectors(vectors [][]float32) []byte {
	size := 0
	for _, x := range vectors {
		size += 4 * len(x)
	}
	out := make([]byte, 0, size) // never reallocated, so that the caller can clear it
	for _, x := range vectors {
		for _, w := range x {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(w))
		}
	}
	return out
}

func unpackVectors(data []byte, dimension int) ([][]float32, error) {
	if dimension <= 0 || len(data) == 0 || len(data)%(4*dimension) != 0 {
		return nil, fmt.Errorf("a voice's vectors: expected some of %d numbers, found %d bytes", dimension, len(data))
	}
	vectors := make([][]float32, 0, len(data)/(4*dimension))
	for part := range slices.Chunk(data, 4*dimension) {
		x := make([]float32, dimension)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:]))
		}
		vectors = append(vectors, x)
	}
	return vectors, nil
}
