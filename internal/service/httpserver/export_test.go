package httpserver

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// exportedTables maps the tables with rows of accounts to the entry of an export
// that has them, and all others to "".
var exportedTables = map[string]string{
	"accounts": "account.json", "account_sums": "account.json", "api_keys": "account.json", "users": "account.json", "packs": "account.json", "holds": "account.json",
	"hooks": "hook.json", "voices": "voices.json", "ledger": "ledger.jsonl", "charged_work": "usage/", "settlements": "usage/", "pack_uses": "usage/",
	"tasks": "/task.json", "corrections": "/corrections.json",
	// The results that tasks name are copied into live_segments until the tasks
	// end, and into callbacks until these are delivered.
	"live_segments": "", "callbacks": "", "idempotency": "",
	// Tables of the operator: secrets, prices, the log of changes, the queue.
	"secrets": "", "prices": "", "audit": "", "identity": "", "workers": "", "chores": "", "lanes": "", "lane_accounts": "", "rate_buckets": "",
	"doomed_blobs": "", "orphans": "", "goose_db_version": "",
	"annotations": "", // no longer used
}

// unexported are the kinds of a customer's texts that an export lacks: secrets
// (also the addresses of audio and callbacks), idempotency keys, the operator's
// notes, and data that the end of a task deletes.
var unexported = []string{"note", "secret", "host", "key", "checkpoint", "live"}

// archive is an export that was read and checked against its manifest.
type archive struct {
	files   map[string]string
	missing map[string]string // errors by entry
}

// all returns the contents and names of all entries but the manifest.
func (a archive) all() (all []byte) {
	for name, content := range a.files {
		if name != "manifest.json" {
			all = append(all, name+"\n"+content+"\n"...)
		}
	}
	return all
}

func readExport(t *testing.T, data []byte) archive {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	a := archive{map[string]string{}, map[string]string{}}
	for _, f := range r.File {
		content, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(content)
		require.NoError(t, err)
		require.NotContains(t, a.files, f.Name)
		require.True(t, filepath.IsLocal(f.Name), f.Name)
		a.files[f.Name] = string(text)
	}
	require.Equal(t, "manifest.json", r.File[len(r.File)-1].Name)
	var m struct {
		Entries []struct {
			Name, SHA256, Error string
			Bytes               int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(a.files["manifest.json"]), &m))
	whole := 1
	for _, e := range m.Entries {
		content, exists := a.files[e.Name]
		assert.Len(t, content, e.Bytes, e.Name)
		if e.Error != "" {
			a.missing[e.Name] = e.Error
			if exists {
				whole++
			}
			continue
		}
		sum := sha256.Sum256([]byte(content))
		assert.Equal(t, hex.EncodeToString(sum[:]), e.SHA256, e.Name)
		whole++
	}
	require.Len(t, a.files, whole, "the manifest lists all entries")
	return a
}

func eraserOf(f *taskstest.Fixture) *erasure.Eraser {
	return &erasure.Eraser{DB: f.Config.DB, Accounts: f.Accounts, Tasks: f.Service}
}

func exportOf(t *testing.T, f *taskstest.Fixture, a accounts.Account) (archive, int) {
	t.Helper()
	var out bytes.Buffer
	missing, err := Export(t.Context(), eraserOf(f), a, &out)
	require.NoError(t, err)
	return readExport(t, out.Bytes()), missing
}

func keepingAudio(c *tasks.Config) { c.KeepAudio = time.Hour }

// TestExportHasEverything: the export of an account has all its marked texts
// except secrets, in every table with rows of accounts, nothing of another
// account, and the ledger and sums exactly.
func TestExportHasEverything(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d, keepingAudio)
		other, c := taskstest.NewCustomer(t, f, "a"), taskstest.NewCustomer(t, f, "b")
		_, err := f.Billing().AddPack(t.Context(), c.Account.ID, billing.Pack{Value: 10_000, ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		c.Add() // paid from the pack
		require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 3}))
		waiting := c.Add()
		f.Exec("UPDATE tasks SET extras = $2 WHERE id = $1", waiting.ID, `{"voices":["`+c.Word("known")+`"]}`)
		require.NoError(t, f.Config.Blobs.Put(t.Context(), tasks.ReferenceKey(waiting.ID, 0), strings.NewReader(c.Word("reference"))))

		a, missing := exportOf(t, f, c.Account)
		assert.Zero(t, missing, a.missing)
		content := a.all()
		assert.Empty(t, other.Traces(nil, content))
		assert.NotContains(t, string(content), other.Account.ID)
		has := c.Traces(nil, content)
		for _, word := range c.Words {
			kind := strings.TrimRight(strings.TrimPrefix(word, "markedb"), "0123456789")
			if strings.HasPrefix(word, "whsec_") || slices.Contains(unexported, kind) {
				assert.NotContains(t, has, word)
			} else {
				assert.Contains(t, has, word)
			}
		}
		secrets, err := db.Column[string](t.Context(), d.Read(), "SELECT hash FROM api_keys UNION ALL SELECT password FROM users UNION ALL SELECT value FROM secrets UNION ALL SELECT secret FROM hooks")
		require.NoError(t, err)
		require.Greater(t, len(secrets), 4)
		for _, secret := range secrets {
			assert.NotContains(t, string(content), secret)
		}
		checkTables(t, d, a)
		checkMoney(t, f, c, a)
		assert.Contains(t, a.files, "tasks/"+waiting.ID+"/voices/0")
		assert.Contains(t, a.files["tasks/"+c.Done.ID+"/recording/"+c.Done.AudioFilename], "markedbaudio")
		t.Logf("%d entries, %d marked texts, %d of them exported", len(a.files), len(c.Words), len(has))
	})
}

// checkTables checks that each table of the database has an entry in exports,
// and that this export has the entry.
func checkTables(t *testing.T, d *db.DB, a archive) {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if d.Dialect() == db.Postgres {
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	tables, err := db.Column[string](t.Context(), d.Read(), query)
	require.NoError(t, err)
	require.Contains(t, tables, "tasks")
	for _, table := range tables {
		entry, known := exportedTables[table]
		assert.True(t, known, "table %s: add what it has of an account to the export, or say here why not", table)
		if entry == "" {
			continue
		}
		rows, err := db.Column[int](t.Context(), d.Read(), "SELECT COUNT(*) FROM "+table)
		require.NoError(t, err)
		assert.NotEqual(t, []int{0}, rows, "the fixture fills table %s", table)
		assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(a.files)), func(name string) bool { return strings.Contains("/"+name, "/"+strings.TrimPrefix(entry, "/")) }), "table %s, entry %s", table, entry)
	}
}

// checkMoney compares the ledger with its rows, and the usage with its sums.
func checkMoney(t *testing.T, f *taskstest.Fixture, c *taskstest.Customer, a archive) {
	t.Helper()
	list, total, err := f.Billing().Transactions(t.Context(), c.Account.ID, billing.Page{Number: 1, Size: 1000})
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(a.files["ledger.jsonl"]), "\n")
	require.Len(t, lines, total)
	require.Greater(t, total, 4)
	charged := billing.Money(0)
	for i, line := range lines {
		var got transaction
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		assert.Equal(t, transactionOf(list[i]), got)
		if list[i].Type == "deduction" {
			charged -= list[i].Amount
		}
	}
	sum := billing.Money(0)
	for name, text := range a.files {
		if !strings.HasPrefix(name, "usage/") {
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		for _, row := range rows[1:] {
			amount, err := billing.ParseMoney(row[len(row)-1])
			require.NoError(t, err)
			sum += amount
		}
	}
	assert.Equal(t, charged, sum)
}

// TestExportNamesWhatIsMissing: the manifest names a task that is deleted
// during the export, a file that the store does not return, and a file that is
// too short; everything else is in the archive. The log names none of these.
func TestExportNamesWhatIsMissing(t *testing.T) {
	var log bytes.Buffer
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), keepingAudio, func(c *tasks.Config) { c.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	c := taskstest.NewCustomer(t, f, "b")
	last := f.Add(func(r *tasks.Request) {
		r.Account, r.Audio, r.Seconds = c.Account.ID, f.Audio(rand.Text()+strings.Repeat("x", 64<<10)), 3
	})
	list, _, err := f.List(t.Context(), c.Account.ID, tasks.Filter{Page: billing.Page{Number: 1, Size: 10}})
	require.NoError(t, err)
	require.Equal(t, last.ID, list[0].ID)
	lost, short := list[len(list)-2], list[1]
	f.Exec("UPDATE tasks SET audio_size = audio_size + 1 WHERE id = $1", short.ID)
	key := ""
	require.NoError(t, f.Config.DB.Read().QueryRow("SELECT result_blob FROM tasks WHERE id = $1", lost.ID).Scan(&key))
	f.Config.Blobs.Inject(func(op, k string) error {
		if op == "open" && k == key {
			return errors.New("the store fails")
		}
		return nil
	})
	var out bytes.Buffer
	once := sync.OnceFunc(func() { require.NoError(t, f.Delete(t.Context(), c.Account.ID, c.Done.ID)) })
	missing, err := Export(t.Context(), eraserOf(f), c.Account, writerFunc(func(p []byte) (int, error) {
		once()
		return out.Write(p)
	}))
	require.NoError(t, err)
	a := readExport(t, out.Bytes())
	assert.Equal(t, map[string]string{
		"tasks/" + c.Done.ID + "/result.json":                       "deleted during the export",
		"tasks/" + c.Done.ID + "/corrections.json":                  "deleted during the export",
		"tasks/" + c.Done.ID + "/recording/" + c.Done.AudioFilename: "deleted during the export",
		"tasks/" + lost.ID + "/result.json":                         "cannot be read now: export the account again later",
		"tasks/" + short.ID + "/recording/" + short.AudioFilename:   "cannot be read now: export the account again later",
	}, a.missing)
	assert.Equal(t, len(a.missing), missing)
	assert.Contains(t, a.files, "tasks/"+lost.ID+"/corrections.json")
	assert.Contains(t, a.files, "tasks/"+last.ID+"/recording/"+last.AudioFilename)
	assert.Contains(t, log.String(), "entry of an export is missing")
	assert.Empty(t, c.Traces(nil, log.Bytes()))
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// TestExportIsWholeOrNone: wherever the receiver is lost, or the context ends,
// the export fails, and no program can open the part that was written.
func TestExportIsWholeOrNone(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	c := taskstest.NewCustomer(t, f, "b")
	var whole bytes.Buffer
	_, err := Export(t.Context(), eraserOf(f), c.Account, &whole)
	require.NoError(t, err)
	for at := 0; at < whole.Len(); at += 1 + whole.Len()/20 {
		for _, end := range []error{io.ErrClosedPipe, context.Canceled} {
			var out bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			_, err := Export(ctx, eraserOf(f), c.Account, writerFunc(func(p []byte) (int, error) {
				if out.Len()+len(p) <= at {
					return out.Write(p)
				}
				if cancel(); errors.Is(end, context.Canceled) {
					return out.Write(p)
				}
				return 0, end
			}))
			cancel()
			_, unreadable := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
			require.Equal(t, err != nil, unreadable != nil, "at byte %d: %v, %v", at, err, unreadable)
			require.True(t, err != nil || errors.Is(end, context.Canceled), "at byte %d", at)
		}
	}
}

// TestExportUsesLittleMemory: the export of a recording of 64 MB allocates a
// fraction of its size.
func TestExportUsesLittleMemory(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	w, err := f.NewAudio(t.Context(), "speech.wav")
	require.NoError(t, err)
	for range 64 {
		_, err = w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	info, err := w.Commit()
	require.NoError(t, err)
	f.Add(func(r *tasks.Request) { r.Audio, r.Seconds = &info, 3 })
	account, err := f.Accounts.Find(t.Context(), f.Account)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var written int64
	_, err = Export(t.Context(), eraserOf(f), account, writerFunc(func(p []byte) (int, error) {
		written += int64(len(p))
		return len(p), nil
	}))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Greater(t, written, info.Size)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(info.Size)/4)
}

// TestSafeName: whatever a recording was called, its entry is a file in the
// task's folder, and its download a file in the client's.
func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"talk.wav": "talk.wav", "Gespräch 1.opus": "Gespräch 1.opus", "../../etc/passwd": ".._.._etc_passwd", `C:\a.wav`: "C__a.wav",
		"..": "recording", "": "recording", ". .": "recording", "a\x00\n.wav": "a__.wav", "a.wav. ": "a.wav", "a\xff.wav": "a\uFFFD.wav", "a\u202egnp.wav": "a_gnp.wav",
		strings.Repeat("ü", 300) + ".wav": strings.Repeat("ü", 98) + ".wav",
	} {
		got := safeName(name)
		assert.Equal(t, want, got)
		assert.LessOrEqual(t, len(got), 200)
		assert.Equal(t, got, path.Base("/x/"+got))
		assert.Equal(t, attachment(want), attachment(name))
	}
}

// TestExportOverHTTP: a key or a login exports its own account, as the audit
// log records; a read-only key does not. A response that is cut off is not a
// valid archive.
func TestExportOverHTTP(t *testing.T) {
	w := newWorld(t)
	other, _ := w.newAccount("other", "1")
	a := w.do("GET", "/account/export", nil)
	require.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, "application/zip", a.header.Get("Content-Type"))
	assert.Contains(t, a.header.Get("Content-Disposition"), "otograph-local.zip")
	files := readExport(t, a.body).files
	assert.Contains(t, files["account.json"], w.account.ID)
	assert.NotContains(t, fmt.Sprint(files), other.ID)
	log, err := w.accounts.AuditLog(t.Context(), time.Time{}, 10)
	require.NoError(t, err)
	require.NotEmpty(t, log)
	assert.Equal(t, []string{"account export", "local"}, []string{log[0].Action, log[0].Subject})
	head := w.do("HEAD", "/account/export", nil)
	assert.Equal(t, http.StatusOK, head.status)
	assert.Empty(t, head.body)

	reader, _, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{ReadOnly: true})
	require.NoError(t, err)
	refused := w.do("GET", "/account/export", nil, with("X-Api-Key", reader))
	assert.Equal(t, http.StatusForbidden, refused.status)
	assert.Empty(t, refused.header.Get("Content-Disposition"))
	assert.Equal(t, http.StatusUnauthorized, w.do("GET", "/account/export", nil, with("X-Api-Key", "")).status)
}
