package library

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/backoff"
	"github.com/otograph/otograph/internal/resume"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

// ErrOffline marks a download whose host could not be reached.
var ErrOffline = errors.New("no connection")

// Progress reports the progress of a download.
type Progress struct {
	// Model and File name the file being fetched.
	Model, File string
	// Done and Total count bytes; Total is 0 while unknown.
	Done, Total int64
	// Resumed is the number of bytes from an earlier attempt.
	Resumed int64
}

// Limits of a download.
const (
	// maxDownload limits a file whose size the catalog does not know (bytes).
	maxDownload = 8 << 30
	// maxAttempts is how many attempts in a row may transfer nothing.
	maxAttempts = 5
	// maxRedirects covers the two or three hops from a model host to a content
	// delivery network.
	maxRedirects = 10
)

// fetcher downloads files and resumes interrupted ones.
type fetcher struct {
	client   *http.Client
	mirror   string
	log      *slog.Logger
	progress func(Progress)
	// stall is how long a connection may transfer nothing.
	stall time.Duration
	// pause is the wait before the second attempt; it doubles with each.
	pause time.Duration
	// attempts is how many attempts in a row may transfer nothing.
	attempts int
}

// hasty returns a fetcher that stops at the first attempt that transfers
// nothing, if there is a second source.
func (f *fetcher) hasty(second bool) *fetcher {
	if !second {
		return f
	}
	other := *f
	other.attempts = 1
	return &other
}

// state is stored next to a partial download and identifies its content. A
// download is resumed only with a strong validator, so that bytes of two
// versions are never joined.
type state struct {
	URL  string `json:"url"`
	ETag string `json:"etag"`
	Size int64  `json:"size"`
}

// mirrored returns the address of a file on the mirror: MIRROR/HOST/PATH, the
// layout written by `wget --force-directories`, or the mirror's address with
// {host} and {path} replaced.
func (f *fetcher) mirrored(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if f.mirror == "" {
		return address, nil
	}
	to := f.mirror
	if !strings.Contains(to, "{path}") {
		to = strings.TrimSuffix(to, "/") + "/{host}/{path}"
	}
	to = strings.NewReplacer("{host}", u.Host, "{path}", strings.TrimPrefix(u.EscapedPath(), "/")).Replace(to)
	m, err := url.Parse(to)
	if err != nil || (m.Scheme != "http" && m.Scheme != "https") || m.Host == "" {
		return "", fmt.Errorf("mirror: expected an http or https address, found %q", f.mirror)
	}
	return to, nil
}

// fetch downloads d into the file part (which may hold the beginning from an
// earlier run), checks length and hash, and returns the hash.
func (f *fetcher) fetch(ctx context.Context, model string, d Download, part string) (string, error) {
	address, err := f.mirrored(d.URL)
	if err != nil {
		return "", err
	}
	resumed := partSize(part) // the rest of an earlier run
	best, idle := resumed, 0
	for {
		err := f.attempt(ctx, model, d, address, part)
		if err == nil {
			sum, err := f.verify(d, part, address)
			if err == nil {
				return sum, os.Remove(part + ".json")
			}
			discard(part)
			// Bytes from an earlier run may have been damaged on disk since
			// then. One complete download decides.
			if resumed > 0 {
				resumed, best, idle = 0, 0, 0
				f.log.Warn("resumed download does not match, restarting", "file", d.Name, "error", err)
				continue
			}
			return "", err
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if spec.IsPermanent(err) {
			if errors.Is(err, models.ErrBroken) {
				discard(part)
			}
			return "", err
		}
		// Only bytes beyond the previous maximum count as progress, so that a
		// source that keeps restarting can't keep this loop running.
		if size := partSize(part); size > best {
			best, idle = size, 0
		}
		if idle++; idle >= f.attempts {
			return "", f.explain(err, address, d)
		}
		f.log.Info("download interrupted, retrying", "file", d.Name, "bytes", partSize(part), "error", err)
		if !backoff.Sleep(ctx, f.pause<<(idle-1)) {
			return "", context.Cause(ctx)
		}
	}
}

// attempt makes one request, starting at the end of part if its validator is
// known and still matches.
func (f *fetcher) attempt(ctx context.Context, model string, d Download, address, part string) (err error) {
	have, st := partSize(part), readState(part)
	if have > 0 && (st.URL != address || st.ETag == "") {
		discard(part)
		have, st = 0, state{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.stall, func() { cancel(fmt.Errorf("no data for %s", f.stall)) })
	defer watch.Stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !spec.IsPermanent(err) {
			err = cause
		}
	}()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return spec.Permanent(err)
	}
	going := resume.Download{Have: have, Total: cmp.Or(st.Size, -1), Validator: st.ETag}
	going.Ask(req.Header)
	req.Header.Set("User-Agent", "otograph")
	resp, err := f.client.Do(req)
	if errors.Is(err, errRedirect) {
		return spec.Permanent(err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	content, err := going.Accept(resp)
	var status *resume.StatusError
	switch {
	case errors.Is(err, resume.ErrRestart):
		discard(part)
		return err
	case errors.As(err, &status) && status.Temporary():
		return fmt.Errorf("%s answers %s", address, resp.Status)
	case err != nil:
		return spec.Permanent(fmt.Errorf("%w: %s: %s answers %s", models.ErrMissing, d.Name, address, resp.Status))
	case content == resume.Nothing:
		return nil // it was already complete
	case content == resume.Whole:
		discard(part)
		have = 0
	}
	total := going.Total
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return spec.Permanent(fmt.Errorf("%w: %s: expected the file itself from %s, found it encoded as %q", models.ErrBroken, d.Name, address, enc))
	}
	limit := int64(maxDownload)
	if d.Size > 0 {
		limit = d.Size
		if total >= 0 && total != d.Size {
			return spec.Permanent(fmt.Errorf("%w: %s: expected %d bytes, %s offers %d", models.ErrBroken, d.Name, d.Size, address, total))
		}
	}
	if total > limit {
		return spec.Permanent(fmt.Errorf("%w: %s: expected at most %d bytes, %s offers %d", models.ErrBroken, d.Name, limit, address, total))
	}

	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return spec.Permanent(err)
	}
	defer func() {
		if closed := out.Close(); err == nil && closed != nil {
			err = spec.Permanent(closed)
		}
	}()
	if have == 0 {
		if err := writeState(part, state{address, going.Validator, max(total, 0)}); err != nil {
			return spec.Permanent(err)
		}
	}
	p := Progress{Model: model, File: d.Name, Done: have, Total: max(total, d.Size, 0), Resumed: have}
	err = f.copy(out, resp.Body, watch, &p, limit)
	switch {
	case errors.Is(err, errTooLong):
		return spec.Permanent(fmt.Errorf("%w: %s: expected %d bytes, %s sends more", models.ErrBroken, p.File, limit, address))
	case err == nil && total >= 0 && p.Done < total:
		return io.ErrUnexpectedEOF
	}
	return err
}

// errTooLong is returned when a server sends more than was expected.
var errTooLong = errors.New("too long")

// copy appends the body to the file, at most up to limit.
func (f *fetcher) copy(out *os.File, body io.Reader, watch *time.Timer, p *Progress, limit int64) error {
	buf := make([]byte, 128<<10)
	f.progress(*p)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.Reset(f.stall)
			if p.Done+int64(n) > limit {
				return errTooLong
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return spec.Permanent(fmt.Errorf("%s: %w", p.File, err))
			}
			p.Done += int64(n)
			f.progress(*p)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// verify checks length and hash of a complete download.
func (f *fetcher) verify(d Download, part, address string) (string, error) {
	sum, size, err := HashFile(part)
	if err != nil {
		return "", err
	}
	if d.Size > 0 && size != d.Size {
		return "", fmt.Errorf("%w: %s from %s: expected %d bytes, found %d", models.ErrBroken, d.Name, address, d.Size, size)
	}
	if d.SHA256 != "" && sum != d.SHA256 {
		return "", fmt.Errorf("%w: %s from %s: expected sha256 %s, found %s", models.ErrBroken, d.Name, address, d.SHA256, sum)
	}
	return sum, nil
}

// explain turns the last error of a failed download into an error that users
// can act on.
func (f *fetcher) explain(err error, address string, d Download) error {
	var dns *net.DNSError
	var op *net.OpError
	if errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" {
		host := address
		if u, e := url.Parse(address); e == nil {
			host = u.Host
		}
		return fmt.Errorf("%w: %s cannot be reached (%w). Without a connection: fetch %s elsewhere and run `otograph models import FILE`; "+
			"to use a proxy, set HTTPS_PROXY; if you host a mirror, pass --mirror URL", ErrOffline, host, err, d.URL)
	}
	return fmt.Errorf("%s: the download from %s was interrupted %d times in a row: %w; run the command again to continue", d.Name, address, maxAttempts, err)
}

func partSize(part string) int64 {
	info, err := os.Stat(part)
	if err != nil {
		return 0
	}
	return info.Size()
}

// discard deletes a partial download.
func discard(part string) {
	os.Remove(part)
	os.Remove(part + ".json")
}

func readState(part string) state {
	var st state
	if data, err := os.ReadFile(part + ".json"); err != nil || json.Unmarshal(data, &st) != nil {
		return state{}
	}
	return st
}

func writeState(part string, st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return os.WriteFile(part+".json", data, 0o644)
}

// HashFile returns a file's SHA-256 in hex and its size in bytes.
func HashFile(file string) (string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// partFile returns the path of a download until it is complete. Its name
// depends on the expected content, so that different versions are never mixed.
func partFile(dir string, d Download) string {
	sum := sha256.Sum256([]byte(d.URL + "\n" + d.SHA256))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+"-"+path.Base(d.Name)+".part")
}

// errRedirect marks a refused redirect.
var errRedirect = errors.New("redirect refused")

// checkRedirect refuses redirects that a model host has no reason to use.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d in a row", errRedirect, maxRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https",
		via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: from %s to %s", errRedirect, via[0].URL.Scheme, req.URL.Scheme)
	}
	return nil
}
