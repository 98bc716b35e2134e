package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/spec"
)

// checkSize is the number of bytes checked before the rest is fetched.
const checkSize = 64 << 10

// Errors of a download that are the input's fault.
var (
	// ErrSourceStatus is returned for a status that a retry does not change.
	ErrSourceStatus = errors.New("the source refused")
	// ErrSourceSize is returned for audio of a size that is not allowed.
	ErrSourceSize = errors.New("audio size outside the limits")
)

// ErrSourceSlow ends a download whose source is below the minimum rate.
var ErrSourceSlow = errors.New("the source is too slow")

// pace ends a download that is slower than its minimum rate.
type pace struct {
	config *FetcherConfig
	begun  time.Time // the first answer
	got    int64     // bytes received, including discarded ones
	timer  *time.Timer
}

// start begins with the first response and continues with each further one;
// slow is called when the source has become too slow.
func (p *pace) start(slow func(error)) (stop func() bool) {
	if p.begun.IsZero() {
		p.begun = time.Now()
	}
	p.timer = time.AfterFunc(p.left(), func() {
		slow(fmt.Errorf("%w: expected at least %d bytes a second after the first %s", ErrSourceSlow, p.config.Rate, p.config.Slow))
	})
	return p.timer.Stop
}

func (p *pace) left() time.Duration {
	allowed := p.config.Slow + time.Duration(float64(p.got)/float64(p.config.Rate)*float64(time.Second))
	return time.Until(p.begun.Add(allowed))
}

// fetchAudio downloads url into a new file under key and returns its info. A
// dropped connection is resumed where it stopped, if the source sent a strong
// ETag or a Last-Modified and still sends it (If-Range). If the content has
// changed or ranges are not honored, the download restarts: two versions are
// never joined. Errors that a retry can't fix are Permanent: 4xx except 408,
// 425 and 429, sizes outside c's limits, and content that c.Check rejects.
func fetchAudio(ctx context.Context, c *FetcherConfig, blobs *blob.Store, url, key, filename string) (blob.Info, error) {
	d := &download{config: c, blobs: blobs, url: url, key: key, filename: filename, pace: pace{config: c}}
	defer func() { d.drop() }()
	for try := 0; ; try++ {
		err := d.try(ctx)
		if err == nil {
			break
		}
		switch {
		case ctx.Err() != nil:
			return blob.Info{}, context.Cause(ctx)
		case errors.As(err, new(storeError)):
			return blob.Info{}, fmt.Errorf("fetch: %w", err)
		case spec.IsPermanent(err), errors.Is(err, ErrSourceSlow), try >= c.Resumes, d.w == nil:
			return blob.Info{}, fmt.Errorf("fetch: %w", sourceError{err})
		}
		if errors.Is(err, fetch.ErrRestart) || d.state.Validator == "" {
			d.drop()
		}
		backoff.Sleep(ctx, c.Pause)
	}
	if d.w.Size() < c.MinBytes {
		return blob.Info{}, spec.Permanent(fmt.Errorf("fetch: %w: %d bytes; at least %d are required", ErrSourceSize, d.w.Size(), c.MinBytes))
	}
	if err := d.judge(); err != nil {
		return blob.Info{}, err
	}
	return d.w.Commit()
}

// download is one download, over any number of connections.
type download struct {
	config   *FetcherConfig
	blobs    *blob.Store
	url, key string
	filename string // for config.Check
	pace     pace

	w      *blob.Writer // nil before the first byte
	state  fetch.Resumption
	head   []byte // the first bytes, until they are checked
	judged bool
}

func (d *download) drop() {
	if d.w != nil {
		d.w.Abort()
	}
	d.w, d.head, d.judged, d.state = nil, nil, false, fetch.Resumption{}
}

func (d *download) try(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := d.ask(ctx)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	part, err := d.accept(response)
	if err != nil || part == fetch.PartNothing {
		return err
	}
	if total := d.state.Total; total > d.config.MaxBytes {
		return spec.Permanent(fmt.Errorf("%w: the source announces %d bytes; at most %d are allowed", ErrSourceSize, total, d.config.MaxBytes))
	}
	if d.w == nil {
		if d.w, err = d.blobs.Create(context.WithoutCancel(ctx), d.key); err != nil {
			return storeError{err}
		}
	}
	silence := time.AfterFunc(d.config.Stall, func() { cancel(fmt.Errorf("the source was silent for %s", d.config.Stall)) })
	defer silence.Stop()
	defer d.pace.start(cancel)()
	buffer := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			silence.Reset(d.config.Stall)
			d.pace.got += int64(n)
			d.pace.timer.Reset(d.pace.left())
			if err := d.keep(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return err
		}
	}
	if total := d.state.Total; total >= 0 && d.w.Size() != total {
		return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, d.w.Size(), total)
	}
	return nil
}

func (d *download) ask(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, spec.Permanent(err)
	}
	d.state.Have = 0
	if d.w != nil {
		d.state.Have = d.w.Size()
	}
	d.state.Ask(request.Header)
	return d.config.HTTP.Do(request)
}

// accept checks that a body is the missing rest, or the whole file.
func (d *download) accept(response *http.Response) (fetch.Part, error) {
	had := d.state.Have > 0
	part, err := d.state.Accept(response)
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		err = fmt.Errorf("%w: %s", ErrSourceStatus, spec.Shorten(status.Status))
		if !status.Temporary() {
			err = spec.Permanent(err)
		}
	}
	if err == nil && part == fetch.PartWhole && had { // the content changed, or the source does not support ranges
		state := d.state
		d.drop()
		d.state = state
	}
	return part, err
}

// keep writes received bytes, after checking the first ones.
func (d *download) keep(received []byte) error {
	if d.w.Size()+int64(len(received)) > d.config.MaxBytes {
		return spec.Permanent(fmt.Errorf("%w: more than %d bytes", ErrSourceSize, d.config.MaxBytes))
	}
	if _, err := d.w.Write(received); err != nil {
		return storeError{err}
	}
	if d.judged || d.config.Check == nil {
		return nil
	}
	d.head = append(d.head, received[:min(len(received), checkSize-len(d.head))]...)
	if len(d.head) < checkSize {
		return nil
	}
	return d.judge()
}

// judge checks the first bytes, once.
func (d *download) judge() error {
	if d.judged || d.config.Check == nil {
		return nil
	}
	d.judged = true
	defer func() { d.head = nil }()
	return d.config.Check(d.filename, d.head)
}

// A download fails because of its source or because of the file store.
type (
	sourceError struct{ error }
	storeError  struct{ error }
)

func (e sourceError) Unwrap() error { return e.error }
func (e storeError) Unwrap() error  { return e.error }
