package erasure_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// words hands out texts that occur nowhere else, and remembers them.
type words struct {
	mark string
	all  []string
}

func (w *words) next(what string) string {
	w.all = append(w.all, fmt.Sprintf("marked%s%s%02d", w.mark, what, len(w.all)))
	return w.all[len(w.all)-1]
}

// customer fills an account with everything that a customer can enter.
type customer struct {
	t       *testing.T
	f       *taskstest.Fixture
	account accounts.Account
	words   words
	voice   accounts.Voice
	done    tasks.Task
}

func newCustomer(t *testing.T, f *taskstest.Fixture, mark string) *customer {
	c := &customer{t: t, f: f, words: words{mark: mark}}
	name := c.words.next("account")
	id := f.NewAccount(name, 100_000)
	var err error
	c.account, err = f.Accounts.Find(t.Context(), id)
	require.NoError(t, err)
	user := c.words.next("user")
	for _, e := range []accounts.AuditEntry{
		{Operator: "root@host", Action: "account create", Subject: name},
		{Operator: "root@host", Action: "user create", Subject: name, Detail: user},
		{Operator: "root@host", Action: "account suspend", Subject: id, Detail: c.words.next("note")},
		{Operator: "user " + user, Action: "key revoke", Subject: "some key", Detail: "of " + name},
		{Operator: "root@host", Action: "user passwd", Subject: user},
	} {
		require.NoError(t, c.f.Accounts.Record(t.Context(), e))
	}
	_, err = f.Accounts.CreateUser(t.Context(), id, user, "correct horse battery")
	require.NoError(t, err)
	_, _, err = f.Accounts.CreateKey(t.Context(), id)
	require.NoError(t, err)
	c.voice, err = f.Accounts.AddVoice(t.Context(), id, voices.Voice{Name: c.words.next("voice"), Model: strings.Repeat("01", 32), Consent: c.words.next("consent"), Vectors: [][]float32{{0.6, 0.8}}})
	require.NoError(t, err)
	_, err = f.Outbox().SetHook(t.Context(), id, webhook.Hook{URL: "https://" + c.words.next("hook") + ".example/"})
	require.NoError(t, err)
	secret, err := f.Outbox().RotateSecret(t.Context(), id)
	require.NoError(t, err)
	c.words.all = append(c.words.all, secret)
	for i := range 6 {
		task := c.task(i)
		if i == 0 {
			c.done = task
		}
	}
	return c
}

// task creates a task that ends with a result or without one, with marked texts
// in all fields, files and corrections.
func (c *customer) task(i int) tasks.Task {
	ctx := c.t.Context()
	r := c.f.Request(func(r *tasks.Request) {
		r.Account, r.Filename = c.account.ID, c.words.next("file")+".wav"
		r.Options.Hotwords, r.Options.InitialPrompt = []string{c.words.next("hotword")}, new(c.words.next("prompt"))
		r.CallbackURL, r.CallbackSecret = "https://"+c.words.next("host")+".example/", c.words.next("secret")
		r.Audio, r.Seconds = c.f.Audio(c.words.next("audio")), 3
	})
	task, _, err := c.f.Create(ctx, r, tasks.Idempotency{Key: c.words.next("key"), BodyHash: "h"})
	require.NoError(c.t, err)
	claim := c.f.Take()
	c.f.Exec("INSERT INTO live_segments (task_id, attempt, first, segments) VALUES ($1, 1, 0, $2)", task.ID, `[{"text": "`+c.words.next("live")+`"}]`)
	require.NoError(c.t, c.f.Config.Blobs.Put(ctx, tasks.CheckpointPrefix(task.ID)+"0123/vad", bytes.NewReader([]byte(c.words.next("checkpoint")))))
	if i%3 == 2 {
		require.NoError(c.t, c.f.Release(ctx, claim, tasks.EndPermanent, c.words.next("error")))
		return task
	}
	result := spec.Result{Ran: spec.Capabilities{ASR: true}, Language: "en", Segments: []spec.Segment{{Text: c.words.next("text"), End: 1}}}
	require.NoError(c.t, c.f.Complete(ctx, claim, tasks.Outcome{Seconds: 3, Result: result}))
	c.f.Exec("INSERT INTO corrections (task_id, version, author, made_at, change) VALUES ($1, 1, 'x', 1, $2)", task.ID, `{"text": "`+c.words.next("correction")+`"}`)
	return task
}

// traces returns the marked words in the files below the folders and in texts.
func (c *customer) traces(folders []string, texts ...[]byte) (traces []string) {
	c.t.Helper()
	for _, folder := range folders {
		require.NoError(c.t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			texts = append(texts, []byte(path), content)
			return err
		}))
	}
	for _, word := range c.words.all {
		for _, text := range texts {
			if bytes.Contains(text, []byte(word)) {
				traces = append(traces, word)
				break
			}
		}
	}
	return traces
}

// rows returns the text of every row of every table of a PostgreSQL database.
func rows(t *testing.T, d *db.DB) []byte {
	t.Helper()
	tables, err := db.Column[string](t.Context(), d.Read(), "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = current_schema()")
	require.NoError(t, err)
	require.Contains(t, tables, "hooks")
	var all []string
	for _, table := range tables {
		texts, err := db.Column[string](t.Context(), d.Read(), "SELECT CAST(t AS text) FROM "+table+" t")
		require.NoError(t, err)
		all = append(all, texts...)
	}
	return []byte(strings.Join(all, "\n"))
}

// TestErasedAccountLeavesNoRow: over PostgreSQL, none of the marked words of a
// deleted account is in a row of any table or in the file store, and another
// account keeps its own.
func TestErasedAccountLeavesNoRow(t *testing.T) {
	d := dbtest.Postgres(t, db.Options{})
	f := taskstest.New(t, d)
	e := &erasure.Eraser{DB: d, Accounts: f.Accounts, Tasks: f.Service}
	other, c := newCustomer(t, f, "a"), newCustomer(t, f, "b")
	require.Greater(t, len(c.traces([]string{f.Dir}, rows(t, d))), len(c.words.all)*2/3, "the search finds words; results are compressed")
	kept := other.traces([]string{f.Dir}, rows(t, d))
	require.NoError(t, f.Accounts.Suspend(t.Context(), c.account.ID))
	suspended, err := f.Accounts.Find(t.Context(), c.account.ID)
	require.NoError(t, err)
	receipt, err := e.Account(t.Context(), suspended)
	require.NoError(t, err)
	assert.Empty(t, c.traces([]string{f.Dir}, rows(t, d)))
	assert.Equal(t, kept, other.traces([]string{f.Dir}, rows(t, d)))
	assert.True(t, verified(t, e, receipt).Erased.Whole)
	f.Exact()
}

// TestErasedAccountLeavesNothing: after the deletion of an account, none of its
// marked words is in the database file, its write-ahead log, the file store or
// the log, another account keeps everything, money stays, and the receipt names
// what was deleted and verifies with the published key alone.
func TestErasedAccountLeavesNothing(t *testing.T) {
	path := dbtest.SQLitePath(t)
	var log bytes.Buffer
	f := taskstest.New(t, dbtest.Open(t, path, db.Options{}), func(c *tasks.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	e := &erasure.Eraser{DB: f.Config.DB, Accounts: f.Accounts, Tasks: f.Service}
	other := newCustomer(t, f, "a")
	c := newCustomer(t, f, "b")
	before := c.traces([]string{filepath.Dir(path), f.Dir})
	require.Greater(t, len(before), len(c.words.all)*2/3, "the search finds words; results are compressed")

	_, err := e.Account(t.Context(), c.account)
	require.ErrorIs(t, err, accounts.ErrInUse, "not suspended")
	require.NoError(t, f.Accounts.Suspend(t.Context(), c.account.ID))
	suspended, err := f.Accounts.Find(t.Context(), c.account.ID)
	require.NoError(t, err)
	entries := f.Count("SELECT COUNT(*) FROM ledger WHERE account_id = $1", c.account.ID)
	receipt, err := e.Account(t.Context(), suspended)
	require.NoError(t, err)

	assert.Empty(t, c.traces([]string{filepath.Dir(path), f.Dir}))
	for _, word := range c.traces(nil, log.Bytes()) {
		assert.Contains(t, word, "error", "the log has reasons of failures, and no content")
	}
	t.Logf("%d marked words, %d readable before the deletion; none in database, write-ahead log, store and log after it", len(c.words.all), len(before))
	assert.Equal(t, entries, f.Count("SELECT COUNT(*) FROM ledger WHERE account_id = $1", c.account.ID))
	f.Exact()
	assert.NotEmpty(t, other.traces([]string{filepath.Dir(path)}))
	_, err = f.Result(t.Context(), other.account.ID, other.done.ID)
	require.NoError(t, err)

	r := verified(t, e, receipt)
	assert.True(t, r.Erased.Whole)
	assert.Equal(t, c.account.ID, r.Erased.Account)
	assert.Len(t, r.Erased.Tasks, 6)
	assert.Len(t, r.Erased.Users, 1)
	assert.Len(t, r.Erased.Keys, 1)
	assert.Equal(t, []string{c.voice.ID}, r.Erased.Voices)
	again, err := f.Accounts.Find(t.Context(), c.account.ID)
	require.NoError(t, err)
	assert.Equal(t, "deleted "+c.account.ID, again.Name)
	log2, err := c.f.Accounts.AuditLog(t.Context(), time.Time{}, 100)
	require.NoError(t, err)
	assert.Len(t, log2, 10, "no entry is lost")
}

// verified checks a receipt as a customer does: with the published key.
func verified(t *testing.T, e *erasure.Eraser, receipt string) (r erasure.Receipt) {
	t.Helper()
	key, err := e.Key(context.Background())
	require.NoError(t, err)
	x, err := base64.RawURLEncoding.DecodeString(key.X)
	require.NoError(t, err)
	_, err = jwt.ParseWithClaims(receipt, &r, func(*jwt.Token) (any, error) { return ed25519.PublicKey(x), nil }, jwt.WithValidMethods([]string{key.Algorithm}))
	require.NoError(t, err)
	return r
}

// TestReceiptOfATask: the receipt of a task has the hashes of its files, the
// database verifies it, and a changed receipt does not verify.
func TestReceiptOfATask(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		e := &erasure.Eraser{DB: d, Accounts: f.Accounts, Tasks: f.Service}
		task := f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = f.Audio("a recording"), 3 })
		_, err := e.Task(t.Context(), f.Account, task.ID)
		require.ErrorIs(t, err, tasks.ErrProcessing)
		_, err = e.Account(t.Context(), accounts.Account{ID: f.Account, SuspendedAt: new(time.Now())})
		require.ErrorIs(t, err, accounts.ErrInUse)
		f.Exec("UPDATE tasks SET status = 'failed', phase = 'delayed' WHERE id = $1", task.ID)
		_, err = e.Task(t.Context(), f.NewAccount("other", 0), task.ID)
		require.ErrorIs(t, err, tasks.ErrForbidden)
		receipt, err := e.Task(t.Context(), f.Account, task.ID)
		require.NoError(t, err)
		r, err := e.Verify(t.Context(), receipt)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte("a recording"))
		require.Len(t, r.Erased.Tasks, 1)
		require.Len(t, r.Erased.Tasks[0].Files, 1)
		assert.Equal(t, hex.EncodeToString(sum[:]), r.Erased.Tasks[0].Files[0].SHA256)
		assert.Equal(t, task.ID, r.Erased.Tasks[0].ID)
		assert.False(t, r.Erased.Whole)
		assert.NotEmpty(t, r.Issuer)
		_, err = e.Verify(t.Context(), receipt[:len(receipt)-9]+"AAAAAAAAA")
		require.Error(t, err)
		// The audit log stays append-only in every other respect.
		require.NoError(t, f.Accounts.Record(t.Context(), accounts.AuditEntry{Operator: "o", Action: "a", Subject: "s", Detail: "d"}))
		for _, change := range []string{"SET subject = 'x'", "SET action = 'b', detail = '', subject = 'deleted x'", "SET detail = 'e', subject = 'deleted x'", "SET operator = 'p', detail = '', subject = 'deleted x'"} {
			_, err := d.Exec(t.Context(), "UPDATE audit "+change)
			require.Error(t, err, change)
		}
		_, err = d.Exec(t.Context(), "DELETE FROM audit")
		require.Error(t, err)
	})
}
