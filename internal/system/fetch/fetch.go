// Package fetch gets files over HTTP: it resumes interrupted downloads if the
// source still has the same content, checks every file before it is used, and
// unpacks archives that may be hostile.
package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Kinds of failures; test with errors.Is.
var (
	// ErrOffline marks a download whose host could not be reached.
	ErrOffline = errors.New("no connection")
	// ErrMissing marks a file that the source does not have.
	ErrMissing = errors.New("not at the source")
	// ErrBroken marks content of another length or hash than expected.
	ErrBroken = errors.New("unexpected content")
)

// File is a file to fetch.
type File struct {
	// Name is the file's name after the download.
	Name string `json:"name"`
	// URL is the publisher's address; empty for a file in an archive.
	URL string `json:"url,omitempty"`
	// Size in bytes; 0 if it is not published.
	Size int64 `json:"size,omitempty"`
	// SHA256 in lower-case hex. It is empty if no hash is published: the first
	// download is then trusted and its hash recorded.
	SHA256 string `json:"sha256,omitempty"`
}

// Progress reports the progress of a download.
type Progress struct {
	// File names the file being fetched.
	File string
	// Done and Total count bytes; Total is 0 while unknown.
	Done, Total int64
	// Resumed is the number of bytes from an earlier attempt.
	Resumed int64
}

// Limits of a download.
const (
	// maxUnknown limits a file whose size is not published (bytes).
	maxUnknown = 8 << 30
	// Attempts is the default of Fetcher.Attempts.
	Attempts = 5
	// MaxRedirects covers the two or three hops to a delivery network.
	MaxRedirects = 10
)

// Fetcher downloads files and resumes interrupted ones; New sets defaults.
type Fetcher struct {
	// Client makes the requests; nil means a client that honors the proxy
	// variables of the environment.
	Client *http.Client
	// Mirror is the address to fetch from instead of the publishers' hosts:
	// MIRROR/HOST/PATH, or an address with {path} (and {host}). Empty means no
	// mirror.
	Mirror string
	// Progress is called for each piece, in the caller's goroutine; may be nil.
	Progress func(Progress)
	// ByHand is the command that adds a file fetched elsewhere; "" for none.
	ByHand string
	// Stall is how long a connection may transfer nothing (0 means a minute).
	Stall time.Duration
	// Pause is the wait before a second attempt; it doubles (0 means 1 s).
	Pause time.Duration
	// Attempts is how many attempts in a row may transfer nothing.
	Attempts int
}

// New returns a copy of a fetcher with the defaults filled in.
func New(f Fetcher) *Fetcher {
	if f.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableCompression = true
		transport.ResponseHeaderTimeout = time.Minute
		f.Client = &http.Client{Transport: transport}
	}
	if f.Client.CheckRedirect == nil {
		client := *f.Client
		client.CheckRedirect = checkRedirect
		f.Client = &client
	}
	if f.Progress == nil {
		f.Progress = func(Progress) {}
	}
	f.Stall, f.Pause, f.Attempts = cmp.Or(f.Stall, time.Minute), cmp.Or(f.Pause, time.Second), cmp.Or(f.Attempts, Attempts)
	return &f
}

// final is an error that another attempt would not change.
type final struct{ error }

// Unwrap returns the error.
func (f final) Unwrap() error { return f.error }

func isFinal(err error) bool { return errors.As(err, new(final)) }

// state is stored beside a partial download and identifies its content.
// Resuming needs a strong validator: two versions are never joined.
type state struct {
	URL  string `json:"url"`
	ETag string `json:"etag"`
	Size int64  `json:"size"`
}

// mirrored returns the address of a file on the mirror: MIRROR/HOST/PATH, the
// layout written by `wget --force-directories`, or the mirror's address with
// {host} and {path} replaced.
func (f *Fetcher) mirrored(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if f.Mirror == "" {
		return address, nil
	}
	to := f.Mirror
	if !strings.Contains(to, "{path}") {
		to = strings.TrimSuffix(to, "/") + "/{host}/{path}"
	}
	to = strings.NewReplacer("{host}", u.Host, "{path}", strings.TrimPrefix(u.EscapedPath(), "/")).Replace(to)
	m, err := url.Parse(to)
	if err != nil || (m.Scheme != "http" && m.Scheme != "https") || m.Host == "" {
		return "", fmt.Errorf("mirror: expected an http or https address, found %q", f.Mirror)
	}
	return to, nil
}

// Fetch downloads d into the file part (which may hold the beginning from an
// earlier run), checks length and hash, and returns the hash.
func (f *Fetcher) Fetch(ctx context.Context, d File, part string) (string, error) {
	address, err := f.mirrored(d.URL)
	if err != nil {
		return "", err
	}
	resumed := partSize(part) // the rest of an earlier run
	best, idle := resumed, 0
	for {
		err := f.attempt(ctx, d, address, part)
		if err == nil {
			sum, err := Check(d, part)
			if err == nil {
				return sum, os.Remove(part + ".json")
			}
			discard(part)
			// Bytes from an earlier run may have been damaged on disk since
			// then. One complete download decides.
			if resumed > 0 {
				resumed, best, idle = 0, 0, 0
				continue
			}
			return "", fmt.Errorf("%s: %w", address, err)
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if isFinal(err) {
			if errors.Is(err, ErrBroken) {
				discard(part)
			}
			return "", err
		}
		// Only bytes beyond the previous maximum count as progress, so that a
		// source that keeps restarting can't keep this loop running.
		if size := partSize(part); size > best {
			best, idle = size, 0
		}
		if idle++; idle >= f.Attempts {
			return "", f.explain(err, address, d)
		}
		if !backoff.Sleep(ctx, f.Pause<<(idle-1)) {
			return "", context.Cause(ctx)
		}
	}
}

// attempt sends a request from the end of part, if its validator matches.
func (f *Fetcher) attempt(ctx context.Context, d File, address, part string) (err error) {
	have, st := partSize(part), readState(part)
	if have > 0 && (st.URL != address || st.ETag == "") {
		discard(part)
		have, st = 0, state{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.Stall, func() { cancel(fmt.Errorf("no data for %s", f.Stall)) })
	defer watch.Stop()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !isFinal(err) {
			err = cause
		}
	}()
	going := Resumption{Have: have, Total: cmp.Or(st.Size, -1), Validator: st.ETag}
	resp, err := f.ask(ctx, address, &going)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	content, err := going.Accept(resp)
	status, refused := errors.AsType[*StatusError](err)
	switch {
	case errors.Is(err, ErrRestart):
		discard(part)
		return err
	case refused && status.Temporary():
		return fmt.Errorf("%s answers %s", address, resp.Status)
	case err != nil:
		return final{fmt.Errorf("%w: %s: %s answers %s", ErrMissing, d.Name, address, resp.Status)}
	case content == PartNothing:
		return nil // the part is already complete
	case content == PartWhole:
		discard(part)
	}
	if err := d.expect(resp, address, going.Total); err != nil {
		return final{err}
	}
	return f.store(d, address, part, resp.Body, &going, watch)
}

// ask sends the request for the file, or for its missing part.
func (f *Fetcher) ask(ctx context.Context, address string, going *Resumption) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, final{err}
	}
	going.Ask(req.Header)
	req.Header.Set("User-Agent", "otograph")
	resp, err := f.Client.Do(req)
	if errors.Is(err, errRedirect) {
		return nil, final{err}
	}
	return resp, err
}

// limit returns the largest accepted size in bytes.
func (d File) limit() int64 { return cmp.Or(d.Size, maxUnknown) }

// expect checks the announced encoding and size (-1 if unknown) of a response.
func (d File) expect(resp *http.Response, address string, total int64) error {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("%w: %s: expected the file itself from %s, found it encoded as %q", ErrBroken, d.Name, address, enc)
	}
	if d.Size > 0 && total >= 0 && total != d.Size {
		return fmt.Errorf("%w: %s: expected %d bytes, %s offers %d", ErrBroken, d.Name, d.Size, address, total)
	}
	if total > d.limit() {
		return fmt.Errorf("%w: %s: expected at most %d bytes, %s offers %d", ErrBroken, d.Name, d.limit(), address, total)
	}
	return nil
}

// store appends the content to part.
func (f *Fetcher) store(d File, address, part string, body io.Reader, going *Resumption, watch *time.Timer) (err error) {
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return final{err}
	}
	defer func() {
		if closed := out.Close(); err == nil && closed != nil {
			err = final{closed}
		}
	}()
	if going.Have == 0 {
		data, err := json.Marshal(state{address, going.Validator, max(going.Total, 0)})
		if err == nil {
			err = os.WriteFile(part+".json", data, 0o644)
		}
		if err != nil {
			return final{err}
		}
	}
	p := Progress{File: d.Name, Done: going.Have, Total: max(going.Total, d.Size, 0), Resumed: going.Have}
	err = f.copy(out, body, watch, &p, d.limit())
	switch {
	case errors.Is(err, errTooLong):
		return final{fmt.Errorf("%w: %s: expected %d bytes, %s sends more", ErrBroken, p.File, d.limit(), address)}
	case err == nil && going.Total >= 0 && p.Done < going.Total:
		return io.ErrUnexpectedEOF
	}
	return err
}

// errTooLong is returned when a server sends more than was expected.
var errTooLong = errors.New("too long")

// copy appends the body to the file, at most up to limit.
func (f *Fetcher) copy(out *os.File, body io.Reader, watch *time.Timer, p *Progress, limit int64) error {
	buf := make([]byte, 128<<10)
	f.Progress(*p)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.Reset(f.Stall)
			if p.Done+int64(n) > limit {
				return errTooLong
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return final{fmt.Errorf("%s: %w", p.File, err)}
			}
			p.Done += int64(n)
			f.Progress(*p)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Check checks length and hash of a file, and returns the hash.
func Check(d File, file string) (string, error) {
	sum, size, err := HashFile(file)
	if err != nil {
		return "", err
	}
	if d.Size > 0 && size != d.Size {
		return "", fmt.Errorf("%w: %s in %s: expected %d bytes, found %d", ErrBroken, d.Name, file, d.Size, size)
	}
	if d.SHA256 != "" && sum != d.SHA256 {
		return "", fmt.Errorf("%w: %s in %s: expected sha256 %s, found %s", ErrBroken, d.Name, file, d.SHA256, sum)
	}
	return sum, nil
}

// explain turns a download's last error into one that users can act on.
func (f *Fetcher) explain(err error, address string, d File) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" || errors.As(err, new(*net.DNSError)) {
		host := address
		if u, e := url.Parse(address); e == nil {
			host = u.Host
		}
		err = fmt.Errorf("%w: %s cannot be reached (%w); to use a proxy, set HTTPS_PROXY", ErrOffline, host, err)
		if f.ByHand != "" {
			err = fmt.Errorf("%w; if you host a mirror, pass --mirror URL; without a connection, fetch %s elsewhere and run `%s`", err, d.URL, f.ByHand)
		}
		return err
	}
	return fmt.Errorf("%s: the download from %s was interrupted %d times in a row: %w; run the command again to continue", d.Name, address, f.Attempts, err)
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

// HashFile returns a file's SHA-256 in hex and its size in bytes.
func HashFile(file string) (string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// PartFile returns the path of a download until it is complete. Its name
// depends on the expected content, so that different versions are never mixed.
func PartFile(dir string, d File) string {
	sum := sha256.Sum256([]byte(d.URL + "\n" + d.SHA256))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+"-"+path.Base(d.Name)+".part")
}

// errRedirect marks a refused redirect.
var errRedirect = errors.New("redirect refused")

// checkRedirect refuses redirects that a model host has no reason to use.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= MaxRedirects:
		return fmt.Errorf("%w: more than %d in a row", errRedirect, MaxRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https",
		via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: from %s to %s", errRedirect, via[0].URL.Scheme, req.URL.Scheme)
	}
	return nil
}
