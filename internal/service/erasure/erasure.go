// Package erasure deletes tasks, voices and accounts with proof: it checks that
// the files are gone, empties SQLite's write-ahead log, and signs a receipt. A
// receipt is a JSON Web Token (RFC 7519) with an Ed25519 signature (RFC 8037).
package erasure

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/db"
)

// ErrUnproved is returned without a receipt if the deletion is done but some
// deleted data may still be readable.
var ErrUnproved = errors.New("deleted without a receipt")

// Eraser deletes and signs. All fields are required.
type Eraser struct {
	DB       *db.DB
	Accounts *accounts.Store
	Tasks    *tasks.Service
}

// Receipt is the content of a receipt.
type Receipt struct {
	jwt.RegisteredClaims        // the issuer is the database's id
	Erased               Erased `json:"erased"`
}

// Erased names the deleted objects by their ids and the hashes of their files.
type Erased struct {
	Account string `json:"account"`
	Whole   bool   `json:"whole_account"` // the account itself, except the ledger
	Tasks   []Task `json:"tasks,omitempty"`
	accounts.Traces
}

// Task is a deleted task with its files.
type Task struct {
	ID    string `json:"id"`
	Files []File `json:"files"`
}

// File is a deleted file, described before its deletion.
type File struct {
	Key    string `json:"key"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Task deletes a task like tasks.Owners.Delete and returns the receipt.
func (e *Eraser) Task(ctx context.Context, account, id string) (receipt string, err error) {
	t, err := e.task(ctx, account, id)
	if err != nil {
		return "", err
	}
	return e.sign(ctx, Erased{Account: account, Tasks: []Task{t}})
}

// Voice deletes a voice like accounts.Store.DeleteVoice and returns the receipt.
func (e *Eraser) Voice(ctx context.Context, account, id string) (receipt string, err error) {
	if err := e.Accounts.DeleteVoice(ctx, account, id); err != nil {
		return "", err
	}
	return e.sign(ctx, Erased{Account: account, Traces: accounts.Traces{Voices: []string{id}}})
}

// Account deletes a suspended account with its tasks, files, voices, users and
// keys, and returns the receipt. Its ledger stays. If it fails, call it again:
// the receipt lists the objects that were deleted since. The error wraps
// accounts.ErrInUse while the account is not suspended or has unfinished tasks.
func (e *Eraser) Account(ctx context.Context, a accounts.Account) (receipt string, err error) {
	var ids []string
	unfinished := 0
	for t, err := range e.Tasks.All(ctx, a.ID) {
		if err != nil {
			return "", err
		}
		if ids = append(ids, t.ID); !t.Final() {
			unfinished++
		}
	}
	if a.SuspendedAt == nil || unfinished > 0 {
		return "", fmt.Errorf("%w: expected a suspended account without unfinished tasks (%d): suspend it, then wait for them or cancel them", accounts.ErrInUse, unfinished)
	}
	erased := Erased{Account: a.ID, Whole: true}
	for _, id := range ids {
		t, err := e.task(ctx, a.ID, id)
		if errors.Is(err, tasks.ErrNotFound) { // the clean-up has deleted the task meanwhile
			continue
		}
		if err != nil {
			return "", err
		}
		erased.Tasks = append(erased.Tasks, t)
	}
	if erased.Traces, err = e.Accounts.Erase(ctx, a); err != nil {
		return "", err
	}
	return e.sign(ctx, erased)
}

// task deletes a task and checks that its files are gone.
func (e *Eraser) task(ctx context.Context, account, id string) (Task, error) {
	t := Task{ID: id, Files: []File{}}
	keys, err := e.Tasks.Files(ctx, account, id)
	if err != nil {
		return t, err
	}
	for _, key := range keys {
		f, err := e.describe(ctx, key)
		if errors.Is(err, blob.ErrNotFound) {
			continue
		}
		if err != nil {
			return t, err
		}
		t.Files = append(t.Files, f)
	}
	if err := e.Tasks.Delete(ctx, account, id); err != nil {
		return t, err
	}
	for _, f := range t.Files {
		file, err := e.Tasks.Config.Blobs.Open(ctx, f.Key)
		if err == nil {
			err = errors.Join(fmt.Errorf("%w: the file %s is still there; the clean-up deletes it", ErrUnproved, f.Key), file.Close())
		}
		if !errors.Is(err, blob.ErrNotFound) {
			return t, err
		}
	}
	return t, nil
}

func (e *Eraser) describe(ctx context.Context, key string) (File, error) {
	f := File{Key: key}
	file, err := e.Tasks.Config.Blobs.Open(ctx, key)
	if err != nil {
		return f, err
	}
	sum := sha256.New()
	f.Bytes, err = io.Copy(sum, file)
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, errors.Join(err, file.Close())
}

// forgetTries and forgetPause bound the wait for readers of SQLite's log.
const (
	forgetTries = 20
	forgetPause = 100 * time.Millisecond
)

// sign empties the write-ahead log and returns the receipt.
func (e *Eraser) sign(ctx context.Context, erased Erased) (string, error) {
	for try := 1; ; try++ {
		err := e.DB.Forget(ctx)
		if err == nil {
			break
		}
		if try == forgetTries || !backoff.Sleep(ctx, forgetPause) {
			return "", fmt.Errorf("%w: the database's write-ahead log is in use: %w", ErrUnproved, err)
		}
	}
	seed, err := e.Accounts.ReceiptKey(ctx)
	if err != nil {
		return "", err
	}
	id, err := e.DB.Identity(ctx)
	if err != nil {
		return "", err
	}
	now := jwt.NewNumericDate(time.Now())
	return jwt.NewWithClaims(jwt.SigningMethodEdDSA, Receipt{jwt.RegisteredClaims{Issuer: id.ID, IssuedAt: now}, erased}).SignedString(ed25519.NewKeyFromSeed(seed))
}

// Key is the public key of the receipts as a JSON Web Key (RFC 8037).
type Key struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	Algorithm string `json:"alg"`
	X         string `json:"x"`

	public ed25519.PublicKey
}

// Key returns the public key that verifies the database's receipts.
func (e *Eraser) Key(ctx context.Context) (Key, error) {
	seed, err := e.Accounts.ReceiptKey(ctx)
	if err != nil {
		return Key{}, err
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return Key{"OKP", "Ed25519", jwt.SigningMethodEdDSA.Alg(), base64.RawURLEncoding.EncodeToString(public), public}, nil
}

// Verify returns the content of a receipt of this database.
func (e *Eraser) Verify(ctx context.Context, receipt string) (r Receipt, err error) {
	key, err := e.Key(ctx)
	if err != nil {
		return r, err
	}
	_, err = jwt.ParseWithClaims(receipt, &r, func(*jwt.Token) (any, error) { return key.public, nil }, jwt.WithValidMethods([]string{key.Algorithm}))
	return r, err
}
