// Package accounts keeps who may use the service: accounts, their API keys, their users with passwords, and the key that
// signs access tokens. An account's money is package billing's.
package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/otograph/otograph/internal/db"
	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"
)

// Errors that callers act upon.
var (
	// ErrNotFound says that there is no such account, key or user.
	ErrNotFound = errors.New("does not exist")
	// ErrExists says that the name is taken.
	ErrExists = errors.New("exists already")
	// ErrInvalid says that a name or password can't be accepted.
	ErrInvalid = errors.New("not accepted")
	// ErrUnauthorized says that a key or password is wrong (HTTP 401). It never says why.
	ErrUnauthorized = errors.New("credentials are not valid")
)

// Account is one customer.
type Account struct {
	ID        string // UUID
	Name      string
	CreatedAt time.Time
}

// Key describes an API key; the key itself is not kept.
type Key struct {
	ID        string // UUID
	AccountID string
	Hint      string // the first characters, to tell keys apart
	CreatedAt time.Time
	RevokedAt *time.Time
}

// User is a person who logs in with a password.
type User struct {
	ID        string // UUID
	AccountID string
	Username  string
	CreatedAt time.Time
	// PasswordSet is when the password was set last; what a login gave before does not count any more.
	PasswordSet time.Time
}

// Store is the part of the database that this package owns. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	clock   func() time.Time
	hashing *semaphore.Weighted // bounds the memory that password hashing takes
}

// New returns the store over d. clock is asked for the time; nil means time.Now.
func New(d *db.DB, clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{db: d, clock: clock, hashing: semaphore.NewWeighted(4)}
}

func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if db.Unique(err) {
		err = ErrExists
	}
	return fmt.Errorf("%s: %w", what, s.db.Classify(err))
}

var validName = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N} _.@+-]{0,99}$`)

// Create makes an account with balance 0 in tier 1. Names are unique; they begin with a letter or digit and have at most
// 100 letters, digits, spaces and "_.@+-". Errors wrap ErrExists or ErrInvalid.
func (s *Store) Create(ctx context.Context, name string) (Account, error) {
	if !validName.MatchString(name) {
		return Account{}, fmt.Errorf("account name %.120q %w: want 1 to 100 letters, digits, spaces or _.@+-, the first a letter or digit", name, ErrInvalid)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Account{}, err
	}
	a := Account{ID: id.String(), Name: name, CreatedAt: db.Time(db.Micros(s.clock()))}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3)", a.ID, a.Name, db.Micros(a.CreatedAt))
		return err
	})
	return a, s.wrap("account "+name, err)
}

// Find returns the account with the given name or id, or an error that wraps ErrNotFound.
func (s *Store) Find(ctx context.Context, nameOrID string) (Account, error) {
	var a Account
	var created int64
	err := s.db.Read().QueryRowContext(ctx, "SELECT id, name, created_at FROM accounts WHERE name = $1 OR id = $1 ORDER BY CASE WHEN name = $1 THEN 0 ELSE 1 END LIMIT 1", nameOrID).Scan(&a.ID, &a.Name, &created)
	a.CreatedAt = db.Time(created)
	return a, s.wrap("account "+nameOrID, err)
}

// List returns all accounts in the order of their names.
func (s *Store) List(ctx context.Context) ([]Account, error) {
	rows, err := s.db.Read().QueryContext(ctx, "SELECT id, name, created_at FROM accounts ORDER BY name")
	if err != nil {
		return nil, s.wrap("accounts", err)
	}
	defer rows.Close()
	var list []Account
	for rows.Next() {
		var a Account
		var created int64
		if err := rows.Scan(&a.ID, &a.Name, &created); err != nil {
			return nil, s.wrap("accounts", err)
		}
		a.CreatedAt = db.Time(created)
		list = append(list, a)
	}
	return list, s.wrap("accounts", rows.Err())
}

const (
	keyPrefix = "asr_"
	keyLength = len(keyPrefix) + 40
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// CreateKey makes an API key for an account (its id): "asr_" and 40 random base62 characters. The key is returned this
// once; the store keeps its SHA-256.
func (s *Store) CreateKey(ctx context.Context, account string) (key string, k Key, err error) {
	text := []byte(keyPrefix)
	for range 40 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", Key{}, err
		}
		text = append(text, alphabet[n.Int64()])
	}
	key = string(text)
	id, err := uuid.NewV7()
	if err != nil {
		return "", Key{}, err
	}
	k = Key{ID: id.String(), AccountID: account, Hint: key[:8], CreatedAt: db.Time(db.Micros(s.clock()))}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		var found string
		if err := tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1", account).Scan(&found); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO api_keys (id, account_id, hash, hint, created_at) VALUES ($1, $2, $3, $4, $5)",
			k.ID, account, hashKey(key), k.Hint, db.Micros(k.CreatedAt))
		return err
	})
	if err != nil {
		return "", Key{}, s.wrap("key for account "+account, err)
	}
	return key, k, nil
}

func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Authenticate returns the account that an API key belongs to. A key that is malformed, unknown or revoked is
// ErrUnauthorized.
func (s *Store) Authenticate(ctx context.Context, key string) (account string, err error) {
	if len(key) != keyLength || !strings.HasPrefix(key, keyPrefix) {
		return "", ErrUnauthorized
	}
	want := hashKey(key)
	var stored string
	var revoked sql.NullInt64
	err = s.db.Read().QueryRowContext(ctx, "SELECT account_id, hash, revoked_at FROM api_keys WHERE hash = $1", want).Scan(&account, &stored, &revoked)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrUnauthorized
	}
	if err != nil {
		return "", s.wrap("authenticate", err)
	}
	if subtle.ConstantTimeCompare([]byte(stored), []byte(want)) != 1 || revoked.Valid {
		return "", ErrUnauthorized
	}
	return account, nil
}

// Keys returns an account's keys, revoked ones included, oldest first.
func (s *Store) Keys(ctx context.Context, account string) ([]Key, error) {
	rows, err := s.db.Read().QueryContext(ctx, "SELECT id, account_id, hint, created_at, revoked_at FROM api_keys WHERE account_id = $1 ORDER BY created_at, id", account)
	if err != nil {
		return nil, s.wrap("keys", err)
	}
	defer rows.Close()
	var list []Key
	for rows.Next() {
		var k Key
		var created int64
		var revoked sql.NullInt64
		if err := rows.Scan(&k.ID, &k.AccountID, &k.Hint, &created, &revoked); err != nil {
			return nil, s.wrap("keys", err)
		}
		k.CreatedAt = db.Time(created)
		if revoked.Valid {
			at := db.Time(revoked.Int64)
			k.RevokedAt = &at
		}
		list = append(list, k)
	}
	return list, s.wrap("keys", rows.Err())
}

// RevokeKey makes a key useless from now on. Revoking it again changes nothing.
func (s *Store) RevokeKey(ctx context.Context, id string) error {
	return s.one(ctx, "key "+id, "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1", id, db.Micros(s.clock()))
}

func (s *Store) one(ctx context.Context, what, statement string, args ...any) error {
	return s.wrap(what, s.db.Write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, sql.ErrNoRows)
		}
		return nil
	}))
}

// Parameters of argon2id: RFC 9106's second recommendation with half its memory, for small machines.
const (
	argonTime    = 3
	argonMemory  = 32 * 1024 // KiB
	argonThreads = 2
)

// hashPassword returns "argon2id$time$memory$threads$salt$key".
func hashPassword(password string, salt []byte) string {
	return writeHash(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, 32))
}

func writeHash(salt, key []byte) string {
	return fmt.Sprintf("argon2id$%d$%d$%d$%s$%s", argonTime, argonMemory, argonThreads, base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

func checkPassword(stored, password string) bool {
	var time, memory uint32
	var threads uint8
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "argon2id" {
		return false
	}
	if _, err := fmt.Sscanf(strings.Join(parts[1:4], " "), "%d %d %d", &time, &memory, &threads); err != nil || time == 0 || threads == 0 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	return subtle.ConstantTimeCompare(argon2.IDKey([]byte(password), salt, time, memory, threads, uint32(len(want))), want) == 1
}

func checkNewPassword(password string) error {
	if n := utf8.RuneCountInString(password); n < 8 || len(password) > 1024 || !utf8.ValidString(password) {
		return fmt.Errorf("password %w: want at least 8 characters and at most 1,024 bytes of UTF-8", ErrInvalid)
	}
	return nil
}

func (s *Store) newHash(ctx context.Context, password string) (string, error) {
	if err := checkNewPassword(password); err != nil {
		return "", err
	}
	if err := s.hashing.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer s.hashing.Release(1)
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return hashPassword(password, salt), nil
}

// CreateUser makes a user of an account (its id). Usernames are unique and follow the rule of account names.
func (s *Store) CreateUser(ctx context.Context, account, username, password string) (User, error) {
	if !validName.MatchString(username) {
		return User{}, fmt.Errorf("username %.120q %w: want 1 to 100 letters, digits, spaces or _.@+-, the first a letter or digit", username, ErrInvalid)
	}
	hash, err := s.newHash(ctx, password)
	if err != nil {
		return User{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return User{}, err
	}
	u := User{ID: id.String(), AccountID: account, Username: username, CreatedAt: db.Time(db.Micros(s.clock()))}
	u.PasswordSet = u.CreatedAt
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		var found string
		if err := tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1", account).Scan(&found); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO users (id, account_id, username, password, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)",
			u.ID, account, username, hash, db.Micros(u.CreatedAt))
		return err
	})
	return u, s.wrap("user "+username, err)
}

// SetPassword gives a user a new password; access tokens of earlier logins end with it.
func (s *Store) SetPassword(ctx context.Context, username, password string) error {
	hash, err := s.newHash(ctx, password)
	if err != nil {
		return err
	}
	return s.one(ctx, "user "+username, "UPDATE users SET password = $2, updated_at = $3 WHERE username = $1", username, hash, db.Micros(s.clock()))
}

// nobody is what a login with an unknown name is checked against, so that it takes as long as one with a known name.
// No password hashes to its zeros; hashing one here would cost every start of the program 0.14 s.
var nobody = writeHash(make([]byte, 16), make([]byte, 32))

// Login returns the user with this name and password, or ErrUnauthorized.
func (s *Store) Login(ctx context.Context, username, password string) (User, error) {
	if len(username) > 400 || len(password) > 1024 {
		return User{}, ErrUnauthorized
	}
	u := User{Username: username}
	stored := nobody
	var created, set int64
	err := s.db.Read().QueryRowContext(ctx, "SELECT id, account_id, password, created_at, updated_at FROM users WHERE username = $1", username).
		Scan(&u.ID, &u.AccountID, &stored, &created, &set)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return User{}, s.wrap("login", err)
	}
	if err := s.hashing.Acquire(ctx, 1); err != nil {
		return User{}, err
	}
	right := checkPassword(stored, password)
	s.hashing.Release(1)
	if err != nil || !right {
		return User{}, ErrUnauthorized
	}
	u.CreatedAt, u.PasswordSet = db.Time(created), db.Time(set)
	return u, nil
}

// PasswordSet returns when the password of the user with this id was set last (nothing else of a user changes), or
// ErrUnauthorized without such a user.
func (s *Store) PasswordSet(ctx context.Context, user string) (time.Time, error) {
	var set int64
	err := s.db.Read().QueryRowContext(ctx, "SELECT updated_at FROM users WHERE id = $1", user).Scan(&set)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, ErrUnauthorized
	}
	return db.Time(set), s.wrap("user "+user, err)
}

// SigningKey returns the 32 bytes that sign access tokens; the first call on a store makes them.
func (s *Store) SigningKey(ctx context.Context) ([]byte, error) { return s.secret(ctx, "jwt") }

// RotateSigningKey replaces the key that signs access tokens.
func (s *Store) RotateSigningKey(ctx context.Context) error {
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return err
	}
	return s.wrap("token key", s.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO secrets (name, value, created_at) VALUES ('jwt', $1, $2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at`,
			base64.RawStdEncoding.EncodeToString(fresh), db.Micros(s.clock()))
		return err
	}))
}

func (s *Store) secret(ctx context.Context, name string) ([]byte, error) {
	var text string
	err := s.db.Read().QueryRowContext(ctx, "SELECT value FROM secrets WHERE name = $1", name).Scan(&text)
	if err == nil {
		return base64.RawStdEncoding.DecodeString(text)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, s.wrap("secret "+name, err)
	}
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return nil, err
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
			name, base64.RawStdEncoding.EncodeToString(fresh), db.Micros(s.clock())); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT value FROM secrets WHERE name = $1", name).Scan(&text)
	})
	if err != nil {
		return nil, s.wrap("secret "+name, err)
	}
	return base64.RawStdEncoding.DecodeString(text)
}
