package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/tasks"
)

// fetchLimits bound a download.
type fetchLimits struct {
	min, max int64         // bytes
	resumes  int           // how often a dropped connection is taken up again
	pause    time.Duration // before that
	stall    time.Duration // longest silence of the source
}

// Errors of a download that is the input's fault.
var (
	// ErrSourceStatus says that the source answered with a status that a retry does not change.
	ErrSourceStatus = errors.New("the source refused")
	// ErrSourceSize says that the audio is smaller or larger than the service takes.
	ErrSourceSize = errors.New("audio size outside the limits")
)

// fetchAudio downloads url into a new file under key and returns what was written. A connection that drops is taken up
// where it stopped, if the source gave a strong ETag or a Last-Modified and still answers with the same one (If-Range);
// when the content changed in between, or ranges are not honoured, the download begins anew: never are two versions
// joined. Errors that a later attempt can't cure are marked Permanent: 4xx but 408, 425 and 429, and sizes outside limits.
func fetchAudio(ctx context.Context, client HTTPDoer, blobs *blob.Store, url, key string, limits fetchLimits) (blob.Info, error) {
	var w *blob.Writer
	defer func() {
		if w != nil {
			w.Abort()
		}
	}()
	validator, total := "", int64(-1)
	for try := 0; ; try++ {
		size := int64(0)
		if w != nil {
			size = w.Size()
		}
		err := func() error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				return tasks.Permanent(err)
			}
			request.Header.Set("Accept-Encoding", "identity")
			if size > 0 {
				request.Header.Set("Range", "bytes="+strconv.FormatInt(size, 10)+"-")
				request.Header.Set("If-Range", validator)
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			switch {
			case response.StatusCode == http.StatusPartialContent && size > 0:
				first, whole, ok := contentRange(response.Header.Get("Content-Range"))
				if !ok || first != size || (total >= 0 && whole >= 0 && whole != total) || validatorOf(response.Header) != validator {
					return restart{fmt.Errorf("the source answered the range from byte %d with another one (%.80q)", size, response.Header.Get("Content-Range"))}
				}
			case response.StatusCode == http.StatusOK:
				if size > 0 { // the content changed, or the source does not do ranges: from the beginning
					w.Abort()
					w, size = nil, 0
				}
				total, validator = response.ContentLength, validatorOf(response.Header)
			case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && size > 0:
				return restart{fmt.Errorf("the source has no byte %d any more", size)}
			default:
				err := fmt.Errorf("%w: %s", ErrSourceStatus, response.Status)
				switch code := response.StatusCode; {
				case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
					return err
				}
				return tasks.Permanent(err)
			}
			if total > limits.max {
				return tasks.Permanent(fmt.Errorf("%w: the source announces %d bytes; at most %d are taken", ErrSourceSize, total, limits.max))
			}
			if w == nil {
				if w, err = blobs.Create(context.WithoutCancel(ctx), key); err != nil {
					return err
				}
			}
			silence := time.AfterFunc(limits.stall, func() { cancel(fmt.Errorf("the source was silent for %s", limits.stall)) })
			defer silence.Stop()
			buffer := make([]byte, 64<<10)
			for {
				n, err := response.Body.Read(buffer)
				if n > 0 {
					silence.Reset(limits.stall)
					if w.Size()+int64(n) > limits.max {
						return tasks.Permanent(fmt.Errorf("%w: more than %d bytes", ErrSourceSize, limits.max))
					}
					if _, err := w.Write(buffer[:n]); err != nil {
						return storeError{err}
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
			if total >= 0 && w.Size() != total {
				return fmt.Errorf("%w: %d of %d bytes", io.ErrUnexpectedEOF, w.Size(), total)
			}
			return nil
		}()
		if err == nil {
			break
		}
		var store storeError
		if ctx.Err() != nil {
			return blob.Info{}, context.Cause(ctx)
		}
		if tasks.IsPermanent(err) || errors.As(err, &store) || try >= limits.resumes || w == nil {
			return blob.Info{}, fmt.Errorf("fetch: %w", err)
		}
		var again restart
		if errors.As(err, &again) || validator == "" {
			w.Abort()
			w, validator, total = nil, "", -1
		}
		timer := time.NewTimer(limits.pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	if w.Size() < limits.min {
		return blob.Info{}, tasks.Permanent(fmt.Errorf("fetch: %w: %d bytes; at least %d are needed", ErrSourceSize, w.Size(), limits.min))
	}
	return w.Commit()
}

// restart is an error after which what was downloaded is thrown away.
type restart struct{ error }

// storeError is trouble of the file store, not of the source.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// validatorOf returns what If-Range can compare: a strong ETag, else the Last-Modified date, else nothing.
func validatorOf(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange reads "bytes 10-99/100"; whole is -1 for "*".
func contentRange(text string) (first, whole int64, ok bool) {
	span, size, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	if !ok || !strings.HasPrefix(text, "bytes ") {
		return 0, 0, false
	}
	from, to, ok := strings.Cut(span, "-")
	if !ok {
		return 0, 0, false
	}
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	whole = -1
	var err3 error
	if size != "*" {
		whole, err3 = strconv.ParseInt(size, 10, 64)
	}
	return first, whole, err1 == nil && err2 == nil && err3 == nil && first >= 0 && last >= first
}
