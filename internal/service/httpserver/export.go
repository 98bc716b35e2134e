package httpserver

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/erasure"
	"github.com/otograph/otograph/internal/service/fairuse"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/system/blob"
)

// Export writes all data of an account to a ZIP archive, as the API returns
// them, except secrets and the addresses of audio and callbacks. It holds a
// small part of a result or recording in memory at a time.
//
// The last entry, manifest.json, lists all other entries with their SHA-256,
// and objects that could not be read; their number is returned. After an error
// the archive has no directory, so that no program takes it for a complete one.
func Export(ctx context.Context, from *erasure.Eraser, a accounts.Account, to io.Writer) (missing int, err error) {
	x := &export{from: from, account: a, archive: zip.NewWriter(to), begun: time.Now()}
	x.addAccount(ctx)
	for t, err := range from.Tasks.All(ctx, a.ID) {
		if err = cmp.Or(err, x.failed); err != nil {
			return 0, err
		}
		x.addTask(ctx, t)
	}
	x.addJSON(ctx, "manifest.json", func() (any, error) {
		return map[string]any{"account_id": a.ID, "begun_at": stamp(x.begun), "ended_at": stamp(time.Now()), "entries": x.entries}, nil
	})
	if x.failed != nil {
		return x.missing, x.failed
	}
	return x.missing, x.archive.Close()
}

// export is an archive that is being written.
type export struct {
	from    *erasure.Eraser
	account accounts.Account
	archive *zip.Writer
	begun   time.Time
	entries []*entry
	missing int   // entries with an error
	failed  error // of the archive or the context; nothing is added after it
}

// entry is an entry of an archive. The first write creates it.
type entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Error  string `json:"error,omitempty"` // why the entry is missing or, with bytes, incomplete

	export *export
	method uint16
	sum    hash.Hash
	to     io.Writer // nil before the first write
}

// Write implements io.Writer.
func (e *entry) Write(p []byte) (n int, err error) {
	if e.to == nil {
		e.to, err = e.export.archive.CreateHeader(&zip.FileHeader{Name: e.Name, Method: e.method, Modified: e.export.begun})
	}
	if err == nil {
		n, err = e.to.Write(p)
	}
	e.sum.Write(p[:n])
	e.Bytes += int64(n)
	e.export.failed = cmp.Or(e.export.failed, err)
	return n, err
}

// add calls write to fill a new entry. If that fails, the entry has the reason.
func (x *export) add(ctx context.Context, name string, method uint16, write func(io.Writer) error) {
	if x.failed = cmp.Or(x.failed, ctx.Err()); x.failed != nil {
		return
	}
	e := &entry{Name: name, export: x, method: method, sum: sha256.New()}
	err := write(e)
	if x.failed = cmp.Or(x.failed, ctx.Err()); x.failed != nil {
		return
	}
	switch {
	case err == nil:
		_, _ = e.Write(nil) // an empty entry also exists
		e.SHA256 = hex.EncodeToString(e.sum.Sum(nil))
	case errors.Is(err, tasks.ErrNoAudio), errors.Is(err, webhook.ErrNoHook):
		return
	case errors.Is(err, tasks.ErrNotFound):
		e.Error = "deleted during the export"
	case errors.Is(err, blob.ErrNotFound):
		e.Error = "its file is gone"
	default:
		e.Error = "cannot be read now: export the account again later"
	}
	e.sum, e.to = nil, nil
	x.entries = append(x.entries, e)
	if e.Error != "" {
		x.missing++
		task, _, _ := strings.Cut(name, recordingFolder) // without the recording's name
		x.from.Tasks.Config.Logger.WarnContext(ctx, "entry of an export is missing", "account", x.account.ID, "entry", task, "error", err)
	}
}

// addJSON adds the JSON form of the value that read returns.
func (x *export) addJSON(ctx context.Context, name string, read func() (any, error)) {
	x.add(ctx, name, zip.Deflate, func(w io.Writer) error {
		v, err := read()
		if err != nil {
			return err
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// addFile adds a recording.
func (x *export) addFile(ctx context.Context, name string, open func() (io.ReadCloser, error)) {
	x.add(ctx, name, zip.Store, func(w io.Writer) error {
		file, err := open()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, file)
		return errors.Join(err, file.Close())
	})
}

// addAccount adds everything but the tasks.
func (x *export) addAccount(ctx context.Context) {
	id, money := x.account.ID, x.from.Tasks.Billing()
	x.addJSON(ctx, "account.json", func() (any, error) { return Describe(ctx, x.from.Accounts, money, x.account) })
	x.addJSON(ctx, "hook.json", func() (any, error) { return x.from.Tasks.Outbox().Hook(ctx, id) })
	x.add(ctx, "voices.json", zip.Deflate, func(w io.Writer) error {
		register, err := x.from.Accounts.Register(ctx, id)
		if err != nil {
			return err
		}
		defer register.Clear()
		return register.Write(w)
	})
	x.add(ctx, "ledger.jsonl", zip.Deflate, func(w io.Writer) error {
		enc, page := json.NewEncoder(w), billing.Page{Number: 1, Size: maxPageSize}
		for {
			list, _, err := money.Transactions(ctx, id, page)
			for _, t := range list {
				err = cmp.Or(err, enc.Encode(transactionOf(t)))
				page.After = t.ID
			}
			if err != nil || len(list) < page.Size {
				return err
			}
		}
	})
	for year := x.account.CreatedAt.UTC().Year(); year <= x.begun.UTC().Year(); year++ {
		x.add(ctx, fmt.Sprintf("usage/%d.csv", year), zip.Deflate, func(w io.Writer) error {
			begin := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			u, err := x.from.Tasks.Usage(ctx, tasks.UsageQuery{Account: id, Zone: time.UTC, Monthly: true, From: begin, Until: begin.AddDate(1, 0, 0), By: tasks.UsageGroups()})
			if err == nil {
				err = u.WriteCSV(w)
			}
			return err
		})
	}
}

// Describe returns an account with its balance, packs, keys and users.
func Describe(ctx context.Context, people *accounts.Store, money *billing.Store, a accounts.Account) (map[string]any, error) {
	view, viewErr := money.View(ctx, a.ID)
	packs, packsErr := money.Packs(ctx, a.ID)
	keys, keysErr := people.Keys(ctx, a.ID)
	users, usersErr := people.Users(ctx, a.ID)
	for i := range keys {
		keys[i].Hint += "…"
	}
	return map[string]any{
		"id": a.ID, "name": a.Name, "created_at": a.CreatedAt, "suspended_at": a.SuspendedAt,
		"account": view, "packs": listed(packs), "keys": listed(keys), "users": listed(users),
	}, cmp.Or(viewErr, packsErr, keysErr, usersErr)
}

// recordingFolder contains a task's recording, under its own name.
const recordingFolder = "/recording/"

// exportedTask is a task with all its options.
type exportedTask struct {
	fullTask
	taskDetails
	Batch  bool         `json:"batch"`
	Extras tasks.Extras `json:"extras"`
}

// addTask adds a task with its result, corrections and recordings.
func (x *export) addTask(ctx context.Context, t tasks.Task) {
	account, folder := x.account.ID, "tasks/"+t.ID
	x.addJSON(ctx, folder+"/task.json", func() (any, error) {
		return exportedTask{shownTask(t), detailsOf(t), t.BatchMode, t.Extras}, nil
	})
	if t.Status == tasks.StatusDone {
		x.add(ctx, folder+"/result.json", zip.Deflate, func(w io.Writer) error {
			r, err := x.from.Tasks.Result(ctx, account, t.ID)
			if err != nil {
				return err
			}
			return errors.Join(writeResult(w, r), r.Close())
		})
		x.addJSON(ctx, folder+"/corrections.json", func() (any, error) {
			log, err := x.from.Tasks.Corrections(ctx, account, t.ID)
			return records(log, correctionRecordOf), err
		})
	}
	x.addFile(ctx, folder+recordingFolder+safeName(t.AudioFilename), func() (io.ReadCloser, error) { return x.from.Tasks.Audio(ctx, account, t.ID) })
	if t.Final() { // the recordings of known speakers are deleted
		return
	}
	for i := range t.Extras.Voices {
		x.addFile(ctx, fmt.Sprintf("%s/voices/%d", folder, i), func() (io.ReadCloser, error) {
			return x.from.Tasks.Config.Blobs.Open(ctx, tasks.ReferenceKey(t.ID, i))
		})
	}
}

// safeName returns a file name without a path, characters that Windows refuses,
// or marks of direction that show another ending.
func safeName(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cc, unicode.Bidi_Control) || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, name)
	name = strings.ToValidUTF8(name[max(0, len(name)-200):], "") // file systems allow 255 bytes; the ending stays
	return cmp.Or(strings.TrimRight(name, ". "), "recording")
}

// getExport handles GET /account/export, an addition to the specification.
func (s *Server) getExport(w http.ResponseWriter, r *request) error {
	if r.who.ReadOnly {
		return forbidden("this API key is read-only: an export, which contains voices and all names, requires another or a login")
	}
	a, err := s.cfg.Accounts.Find(r.Context(), r.who.Account)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Disposition", attachment("otograph-"+a.Name+".zip"))
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	leave, err := s.exports.Enter(r.Context(), a.ID)
	if errors.Is(err, fairuse.ErrFull) {
		return rateLimited(60, "an export of this account is being sent: wait until it has ended")
	}
	if err != nil {
		return err
	}
	defer leave()
	return s.recorded(r, accounts.AuditEntry{Action: "account export"}, func() error {
		_, err := Export(r.Context(), s.cfg.Erasure, a, w)
		return err
	})
}
