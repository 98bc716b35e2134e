//go:build unix

package taskstest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// Customer is an account with everything that a customer can enter, marked by
// texts that occur nowhere else.
type Customer struct {
	Account accounts.Account
	Voice   accounts.Voice
	Done    tasks.Task // the first task
	// Words are the marked texts: "marked", the customer's mark, the kind of text
	// and a number; the hook's secrets have no mark.
	Words []string

	t    *testing.T
	f    *Fixture
	mark string
}

// NewCustomer adds a customer with six ended tasks to the service of f.
func NewCustomer(t *testing.T, f *Fixture, mark string) *Customer {
	c := &Customer{t: t, f: f, mark: mark}
	name := c.Word("account")
	id := f.NewAccount(name, 100_000)
	var err error
	c.Account, err = f.Accounts.Find(t.Context(), id)
	require.NoError(t, err)
	user := c.Word("user")
	for _, e := range []accounts.AuditEntry{
		{Operator: "root@host", Action: "account create", Subject: name},
		{Operator: "root@host", Action: "user create", Subject: name, Detail: user},
		{Operator: "root@host", Action: "account suspend", Subject: id, Detail: c.Word("note")},
		{Operator: "user " + user, Action: "key revoke", Subject: "some key", Detail: "of " + name},
		{Operator: "root@host", Action: "user passwd", Subject: user},
	} {
		require.NoError(t, f.Accounts.Record(t.Context(), e))
	}
	_, err = f.Accounts.CreateUser(t.Context(), id, user, "correct horse battery")
	require.NoError(t, err)
	_, _, err = f.Accounts.CreateKey(t.Context(), id, accounts.KeyOptions{})
	require.NoError(t, err)
	c.Voice, err = f.Accounts.AddVoice(t.Context(), id, voices.Voice{Name: c.Word("voice"), Model: strings.Repeat("01", 32), Consent: c.Word("consent"), Vectors: [][]float32{{0.6, 0.8}}})
	require.NoError(t, err)
	_, err = f.Outbox().SetHook(t.Context(), id, webhook.Hook{URL: "https://" + c.Word("hook") + ".example/"})
	require.NoError(t, err)
	secret, err := f.Outbox().RotateSecret(t.Context(), id)
	require.NoError(t, err)
	c.Words = append(c.Words, secret)
	for i := range 6 {
		task := c.task(i)
		if i == 0 {
			c.Done = task
		}
	}
	return c
}

// Word returns a new marked text.
func (c *Customer) Word(kind string) string {
	c.Words = append(c.Words, fmt.Sprintf("marked%s%s%02d", c.mark, kind, len(c.Words)))
	return c.Words[len(c.Words)-1]
}

// Add creates a task with marked texts in all fields, and files.
func (c *Customer) Add() tasks.Task {
	ctx := c.t.Context()
	r := c.f.Request(func(r *tasks.Request) {
		r.Account, r.Filename = c.Account.ID, c.Word("file")+".wav"
		r.Options.Hotwords, r.Options.InitialPrompt = []string{c.Word("hotword")}, new(c.Word("prompt"))
		r.CallbackURL, r.CallbackSecret = "https://"+c.Word("host")+".example/", c.Word("secret")
		r.Audio, r.Seconds = c.f.Audio(c.Word("audio")), 3
	})
	task, _, err := c.f.Create(ctx, r, tasks.Idempotency{Key: c.Word("key"), BodyHash: "h"})
	require.NoError(c.t, err)
	return task
}

// task adds a task that ends with a result and a correction, or without both.
func (c *Customer) task(i int) tasks.Task {
	ctx, task := c.t.Context(), c.Add()
	claim := c.f.Take()
	c.f.Exec("INSERT INTO live_segments (task_id, attempt, first, segments) VALUES ($1, 1, 0, $2)", task.ID, `[{"text": "`+c.Word("live")+`"}]`)
	require.NoError(c.t, c.f.Config.Blobs.Put(ctx, tasks.CheckpointPrefix(task.ID)+"0123/vad", bytes.NewReader([]byte(c.Word("checkpoint")))))
	if i%3 == 2 {
		require.NoError(c.t, c.f.Release(ctx, claim, tasks.EndPermanent, c.Word("error")))
		return task
	}
	result := spec.Result{Ran: spec.Capabilities{ASR: true}, Language: "en", Segments: []spec.Segment{{Text: c.Word("text"), End: 1}}}
	require.NoError(c.t, c.f.Complete(ctx, claim, tasks.Outcome{Seconds: 3, Result: result}))
	c.f.Exec("INSERT INTO corrections (task_id, version, author, made_at, change) VALUES ($1, 1, 'x', 1, $2)", task.ID, `{"op":"annotate","texts":{"0":"`+c.Word("correction")+`"}}`)
	return task
}

// Traces returns the marked texts in the files below the folders and in texts.
func (c *Customer) Traces(folders []string, texts ...[]byte) (traces []string) {
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
	for _, word := range c.Words {
		for _, text := range texts {
			if bytes.Contains(text, []byte(word)) {
				traces = append(traces, word)
				break
			}
		}
	}
	return traces
}
