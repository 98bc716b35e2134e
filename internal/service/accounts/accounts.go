// Package accounts manages accounts and access to the service: API keys, users
// with passwords, limits, known voices, the key that signs access tokens, and
// the log of changes. Package billing manages an account's money.
package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"

	"github.com/otograph/otograph/internal/system/db"
)

// Errors that callers act upon.
var (
	// ErrNotFound is returned if the account, key or user does not exist.
	ErrNotFound = errors.New("does not exist")
	// ErrExists is returned if the name is in use.
	ErrExists = errors.New("exists already")
	// ErrInvalid is returned for a name or password that can't be accepted.
	ErrInvalid = errors.New("not accepted")
	// ErrTooManyKeys is returned if the account has reached its limit of valid
	// keys (409).
	ErrTooManyKeys = errors.New("too many API keys")
	// ErrUnauthorized is returned for a wrong key or password (401), never why.
	ErrUnauthorized = errors.New("credentials are not valid")
)

// Account is one customer.
type Account struct {
	ID          string // UUID
	Name        string
	CreatedAt   time.Time
	SuspendedAt *time.Time // nil: not suspended
}

// Key describes an API key; the key itself is not stored.
type Key struct {
	ID        string     `json:"id"` // UUID
	AccountID string     `json:"-"`
	Hint      string     `json:"key"`       // the first characters, to tell keys apart
	ReadOnly  bool       `json:"read_only"` // it may read, but change nothing
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil: never
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	UsedAt    *time.Time `json:"last_used_at,omitempty"` // accurate to ten minutes; nil if never used
}

// User is a person who logs in with a password.
type User struct {
	ID        string    `json:"id"` // UUID
	AccountID string    `json:"-"`
	Username  string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// PasswordSet is the time of the last password; earlier logins are invalid.
	PasswordSet time.Time `json:"-"`
}

// Store is this package's part of the database, safe for concurrent use.
type Store struct {
	db       *db.DB
	log      *slog.Logger
	clock    func() time.Time
	hashing  *semaphore.Weighted // limits the memory for password hashing
	unfolded atomic.Bool         // deleted voices may still be in SQLite's write-ahead log
}

// New returns the store in d. A nil log discards; a nil clock is time.Now.
func New(d *db.DB, log *slog.Logger, clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	s := &Store{db: d, log: cmp.Or(log, slog.New(slog.DiscardHandler)), clock: clock, hashing: semaphore.NewWeighted(4)}
	s.unfolded.Store(true) // an earlier process may have stopped before folding
	return s
}

// now returns the time as the database stores it.
func (s *Store) now() time.Time { return db.Time(db.Micros(s.clock())) }

func (s *Store) wrap(what string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if db.Unique(err) {
		err = ErrExists
	}
	return s.db.Wrap(what, err)
}

// validName reports whether a name begins with a letter or digit and has at most 100
// letters, digits, spaces and "_.@+-". (A regular expression for that takes 13 ms to
// compile, at each start of the program.)
func validName(name string) bool {
	for i, r := range name {
		if !unicode.In(r, unicode.L, unicode.N) && (i == 0 || !strings.ContainsRune(" _.@+-", r)) {
			return false
		}
	}
	n := utf8.RuneCountInString(name)
	return n >= 1 && n <= 100
}

// Create creates an account with balance 0 in tier 1. Names are unique; they
// begin with a letter or digit and have at most 100 letters, digits, spaces and
// "_.@+-". Errors wrap ErrExists or ErrInvalid.
func (s *Store) Create(ctx context.Context, name string) (Account, error) {
	if !validName(name) {
		return Account{}, fmt.Errorf("account name %.120q %w: want 1 to 100 letters, digits, spaces or _.@+-, the first a letter or digit", name, ErrInvalid)
	}
	a := Account{ID: db.NewID(), Name: name, CreatedAt: s.now()}
	_, err := s.db.Exec(ctx, "INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3)", a.ID, a.Name, db.Micros(a.CreatedAt))
	return a, s.wrap("account "+name, err)
}

// Find returns the account with a name or id; the error wraps ErrNotFound.
func (s *Store) Find(ctx context.Context, nameOrID string) (Account, error) {
	var a Account
	err := scanAccount(s.db.Read().QueryRowContext(ctx, selectAccount+"WHERE name = $1 OR id = $1 ORDER BY CASE WHEN name = $1 THEN 0 ELSE 1 END LIMIT 1", nameOrID), &a)
	return a, s.wrap("account "+nameOrID, err)
}

const selectAccount = "SELECT id, name, created_at, suspended_at FROM accounts "

func scanAccount(row db.Row, a *Account) error {
	return row.Scan(&a.ID, &a.Name, db.ScanTime(&a.CreatedAt), db.ScanOptionalTime(&a.SuspendedAt))
}

// List returns all accounts in the order of their names.
func (s *Store) List(ctx context.Context) ([]Account, error) {
	list, err := db.Select(ctx, s.db.Read(), scanAccount, selectAccount+"ORDER BY name")
	return list, s.wrap("accounts", err)
}

const (
	keyPrefix = "asr_"
	keyLength = len(keyPrefix) + 40
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// CreateKey creates an API key for an account (its id): "asr_" and 40 random
// base62 characters. Only it returns the key; the store keeps the SHA-256.
func (s *Store) CreateKey(ctx context.Context, account string, o KeyOptions) (key string, k Key, err error) {
	if !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(s.clock()) {
		return "", Key{}, fmt.Errorf("expiry %s %w: is in the past", o.ExpiresAt.Format(time.RFC3339), ErrInvalid)
	}
	text := []byte(keyPrefix)
	for range 40 {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet)))) // never fails
		text = append(text, alphabet[n.Int64()])
	}
	key = string(text)
	k = Key{ID: cmp.Or(o.ID, db.NewID()), AccountID: account, Hint: key[:8], ReadOnly: o.ReadOnly, CreatedAt: s.now()}
	var expires any
	if !o.ExpiresAt.IsZero() {
		expires = db.Micros(o.ExpiresAt)
		k.ExpiresAt = &o.ExpiresAt
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if err := s.roomForKey(ctx, tx, account, o.Most); err != nil {
			return err
		}
		return db.Do(ctx, tx, "INSERT INTO api_keys (id, account_id, hash, hint, created_at, read_only, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			k.ID, account, hashKey(key), k.Hint, db.Micros(k.CreatedAt), k.ReadOnly, expires)
	})
	if err != nil {
		return "", Key{}, s.wrap("key for account "+account, err)
	}
	return key, k, nil
}

// roomForKey locks an account that has room for a key, else ErrTooManyKeys.
func (s *Store) roomForKey(ctx context.Context, tx *sql.Tx, account string, most int) error {
	var id string
	found, err := db.Found(tx.QueryRowContext(ctx, "SELECT id FROM accounts WHERE id = $1"+s.db.ForUpdate(), account).Scan(&id))
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil || most <= 0 {
		return err
	}
	var valid int
	err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)", account, db.Micros(s.now())).Scan(&valid)
	if err == nil && valid >= most {
		err = fmt.Errorf("%w: the account already has %d: revoke one first", ErrTooManyKeys, valid)
	}
	return err
}

func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

const keyColumns = "k.id, k.account_id, k.hint, k.read_only, k.created_at, k.expires_at, k.revoked_at, k.used_at"

// targets are the targets of keyColumns.
func (k *Key) targets() []any {
	return []any{
		&k.ID, &k.AccountID, &k.Hint, &k.ReadOnly, db.ScanTime(&k.CreatedAt), db.ScanOptionalTime(&k.ExpiresAt), db.ScanOptionalTime(&k.RevokedAt), db.ScanOptionalTime(&k.UsedAt),
	}
}

// Authenticate returns the description of an API key and records its use. It
// returns ErrUnauthorized for a malformed, unknown, revoked or expired key, and
// ErrSuspended for a key of a suspended account.
func (s *Store) Authenticate(ctx context.Context, key string) (Key, error) {
	if len(key) != keyLength || !strings.HasPrefix(key, keyPrefix) {
		return Key{}, ErrUnauthorized
	}
	want := hashKey(key)
	var k Key
	var stored string
	var suspended sql.NullInt64
	err := s.db.Read().QueryRowContext(ctx, "SELECT "+keyColumns+", k.hash, a.suspended_at FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.hash = $1", want).Scan(append(k.targets(), &stored, &suspended)...)
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, ErrUnauthorized
	}
	if err != nil {
		return Key{}, s.wrap("authenticate", err)
	}
	valid := k.RevokedAt == nil && (k.ExpiresAt == nil || s.clock().Before(*k.ExpiresAt))
	if subtle.ConstantTimeCompare([]byte(stored), []byte(want)) != 1 || !valid {
		return Key{}, ErrUnauthorized
	}
	if suspended.Valid {
		return Key{}, ErrSuspended
	}
	s.used(ctx, k)
	return k, nil
}

// Permit returns the errors of Authenticate for an account and one of its keys,
// both by ID. Without a key ("") it checks the account alone.
func (s *Store) Permit(ctx context.Context, account, key string) error {
	return s.wrap("account "+account, Permitted(ctx, s.db.Read(), s.clock(), account, key))
}

// Permitted is Permit at a time, as a transaction sees it.
func Permitted(ctx context.Context, from db.Querier, now time.Time, account, key string) error {
	suspended, err := db.Column[sql.NullInt64](ctx, from, `SELECT suspended_at FROM accounts WHERE id = $1 AND ($2 = '' OR EXISTS (SELECT 1 FROM api_keys k
		WHERE k.id = $2 AND k.account_id = accounts.id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $3)))`, account, key, db.Micros(now))
	switch {
	case err == nil && len(suspended) == 0:
		return ErrUnauthorized
	case err == nil && suspended[0].Valid:
		return ErrSuspended
	}
	return err
}

// Keys returns an account's keys, including revoked ones, oldest first.
func (s *Store) Keys(ctx context.Context, account string) ([]Key, error) {
	list, err := db.Select(ctx, s.db.Read(), func(row db.Row, k *Key) error { return row.Scan(k.targets()...) },
		"SELECT "+keyColumns+" FROM api_keys k WHERE k.account_id = $1 ORDER BY k.created_at, k.id", account)
	return list, s.wrap("keys", err)
}

// RevokeKey revokes a key of an account, "" for any. Revoking it again changes
// nothing; for a key of another account the error wraps ErrNotFound.
func (s *Store) RevokeKey(ctx context.Context, account, id string) error {
	return s.one(ctx, "key "+id, "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 AND $3 IN ('', account_id)", id, db.Micros(s.clock()), account)
}

// one runs a statement that must change a row, or else returns ErrNotFound.
func (s *Store) one(ctx context.Context, what, statement string, args ...any) error {
	n, err := s.db.Exec(ctx, statement, args...)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return s.wrap(what, err)
}

// Parameters of argon2id: the second recommendation of RFC 9106 with half its
// memory, for small machines.
const (
	argonTime    = 3
	argonMemory  = 32 * 1024 // KiB
	argonThreads = 2
)

func writeHash(salt, key []byte) string {
	return fmt.Sprintf("argon2id$%d$%d$%d$%s$%s", argonTime, argonMemory, argonThreads, base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// random returns n random bytes. Reading them never fails.
func random(n int) []byte {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes)
	return bytes
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

func (s *Store) newHash(ctx context.Context, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < 8 || len(password) > 1024 || !utf8.ValidString(password) {
		return "", fmt.Errorf("password %w: want at least 8 characters and at most 1,024 bytes of UTF-8", ErrInvalid)
	}
	if commonPasswords()[strings.ToLower(password)] {
		return "", fmt.Errorf("password %w: it is one of the most common passwords", ErrInvalid)
	}
	if err := s.hashing.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer s.hashing.Release(1)
	salt := random(16)
	return writeHash(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, 32)), nil
}

// CreateUser creates a user of an account (its id). Usernames are unique and
// follow the rule of account names.
func (s *Store) CreateUser(ctx context.Context, account, username, password string) (User, error) {
	if !validName(username) {
		return User{}, fmt.Errorf("username %.120q %w: want 1 to 100 letters, digits, spaces or _.@+-, the first a letter or digit", username, ErrInvalid)
	}
	hash, err := s.newHash(ctx, password)
	if err != nil {
		return User{}, err
	}
	u := User{ID: db.NewID(), AccountID: account, Username: username, CreatedAt: s.now()}
	u.PasswordSet = u.CreatedAt
	return u, s.one(ctx, "user "+username, "INSERT INTO users (id, account_id, username, password, created_at, updated_at) SELECT $1, id, $3, $4, $5, $5 FROM accounts WHERE id = $2",
		u.ID, account, username, hash, db.Micros(u.CreatedAt))
}

// SetPassword sets a user's password and invalidates earlier access tokens.
func (s *Store) SetPassword(ctx context.Context, username, password string) error {
	hash, err := s.newHash(ctx, password)
	if err != nil {
		return err
	}
	return s.one(ctx, "user "+username, "UPDATE users SET password = $2, updated_at = $3 WHERE username = $1", username, hash, db.Micros(s.clock()))
}

// dummyHash is checked on a login with an unknown name, so that such a login
// takes as long as any other. No password hashes to zeros. Computing a hash
// here would delay every start of the program by 0.14 s.
var dummyHash = writeHash(make([]byte, 16), make([]byte, 32))

// Login returns the user with this name and password, or ErrUnauthorized; for a
// suspended account ErrSuspended.
func (s *Store) Login(ctx context.Context, username, password string) (User, error) {
	if len(username) > 400 || len(password) > 1024 {
		return User{}, ErrUnauthorized
	}
	u := User{Username: username}
	stored := dummyHash
	var suspended sql.NullInt64
	err := s.db.Read().QueryRowContext(ctx, `SELECT u.id, u.account_id, u.password, u.created_at, u.updated_at, a.suspended_at
		FROM users u JOIN accounts a ON a.id = u.account_id WHERE u.username = $1`, username).
		Scan(&u.ID, &u.AccountID, &stored, db.ScanTime(&u.CreatedAt), db.ScanTime(&u.PasswordSet), &suspended)
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
	if suspended.Valid { // only who knows the password learns of the suspension
		return User{}, ErrSuspended
	}
	return u, nil
}

// PasswordSet returns when the password of the user with this id was last set
// or the user's sessions were last ended. It returns ErrUnauthorized if the
// user does not exist, and ErrSuspended for a suspended account.
func (s *Store) PasswordSet(ctx context.Context, user string) (time.Time, error) {
	var set time.Time
	var suspended sql.NullInt64
	err := s.db.Read().QueryRowContext(ctx, "SELECT u.updated_at, a.suspended_at FROM users u JOIN accounts a ON a.id = u.account_id WHERE u.id = $1", user).Scan(db.ScanTime(&set), &suspended)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, ErrUnauthorized
	}
	if err == nil && suspended.Valid {
		return time.Time{}, ErrSuspended
	}
	return set, s.wrap("user "+user, err)
}

// SigningKey returns the 32 bytes that sign access tokens; the first call on a
// store creates them.
func (s *Store) SigningKey(ctx context.Context) ([]byte, error) { return s.secret(ctx, "jwt") }

// ReceiptKey returns the 32 bytes from which the key pair of receipts is made;
// the first call on a store creates them.
func (s *Store) ReceiptKey(ctx context.Context) ([]byte, error) { return s.secret(ctx, "receipts") }

// secret returns 32 random bytes, the same at each call.
func (s *Store) secret(ctx context.Context, name string) ([]byte, error) {
	const query = "SELECT value FROM secrets WHERE name = $1"
	var text string
	found, err := db.Found(s.db.Read().QueryRowContext(ctx, query, name).Scan(&text))
	if err == nil && !found {
		err = s.db.Write(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
				name, base64.RawStdEncoding.EncodeToString(random(32)), db.Micros(s.clock())); err != nil {
				return err
			}
			return tx.QueryRowContext(ctx, query, name).Scan(&text)
		})
	}
	if err != nil {
		return nil, s.wrap("key "+name, err)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// RotateSigningKey replaces the key that signs access tokens.
func (s *Store) RotateSigningKey(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `INSERT INTO secrets (name, value, created_at) VALUES ('jwt', $1, $2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at`,
		base64.RawStdEncoding.EncodeToString(random(32)), db.Micros(s.clock()))
	return s.wrap("token key", err)
}

//go:embed commonpasswords.txt
var commonPasswordsFile string

var commonPasswords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(commonPasswordsFile) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			words[strings.ToLower(line)] = true
		}
	}
	return words
})

// ErrSuspended is returned if the account is suspended (HTTP 403).
var ErrSuspended = errors.New("account is suspended")

// Suspend blocks the keys, logins and tokens of an account (its id). Its tasks
// continue; data and money stay. A second call changes nothing.
func (s *Store) Suspend(ctx context.Context, account string) error {
	return s.one(ctx, "account "+account, "UPDATE accounts SET suspended_at = COALESCE(suspended_at, $2) WHERE id = $1", account, db.Micros(s.clock()))
}

// Resume ends an account's suspension.
func (s *Store) Resume(ctx context.Context, account string) error {
	return s.one(ctx, "account "+account, "UPDATE accounts SET suspended_at = NULL WHERE id = $1", account)
}

// Users returns an account's users in the order of their names.
func (s *Store) Users(ctx context.Context, account string) ([]User, error) {
	list, err := db.Select(ctx, s.db.Read(), func(row db.Row, u *User) error {
		return row.Scan(&u.ID, &u.AccountID, &u.Username, db.ScanTime(&u.CreatedAt), db.ScanTime(&u.PasswordSet))
	}, "SELECT id, account_id, username, created_at, updated_at FROM users WHERE account_id = $1 ORDER BY username", account)
	return list, s.wrap("users", err)
}

// DeleteUser deletes a user. The user's access tokens become invalid.
func (s *Store) DeleteUser(ctx context.Context, username string) error {
	return s.one(ctx, "user "+username, "DELETE FROM users WHERE username = $1", username)
}

// EndSessions invalidates all access tokens of a user; the password stays.
func (s *Store) EndSessions(ctx context.Context, username string) error {
	return s.one(ctx, "user "+username, "UPDATE users SET updated_at = CASE WHEN updated_at >= $2 THEN updated_at + 1 ELSE $2 END WHERE username = $1", username, db.Micros(s.clock()))
}

// KeyOptions limit an API key. The zero value limits nothing.
type KeyOptions struct {
	ID        string // a new UUID; "": CreateKey makes one
	ReadOnly  bool
	ExpiresAt time.Time // zero: never
	// Most limits the account's valid keys, else ErrTooManyKeys; 0: no limit.
	Most int
}

// usedEvery is the accuracy of a key's last use: a write for every request
// would cost more than most requests.
const usedEvery = 10 * time.Minute

// used records the use of a key. A failure must not fail the request.
func (s *Store) used(ctx context.Context, k Key) {
	now := s.clock()
	if k.UsedAt != nil && now.Sub(*k.UsedAt) < usedEvery && !now.Before(*k.UsedAt) {
		return
	}
	_, _ = s.db.Exec(ctx, "UPDATE api_keys SET used_at = $2 WHERE id = $1", k.ID, db.Micros(now))
}
