package client

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/spec"
)

// Status is the state of a task.
type Status string

// The states of a task. A failed task is retried unless it has FinishedAt.
const (
	Processing Status = "processing"
	Done       Status = "done"
	Failed     Status = "failed"
	Abandoned  Status = "abandoned"
)

// Task is a transcription task. Only Client.Task returns all fields; creation
// and listing leave some out.
type Task struct {
	ID            string                `json:"id"`
	Status        Status                `json:"status"`
	Filename      string                `json:"audio_filename"`
	SourceType    string                `json:"audio_source_type"`
	Size          *int64                `json:"audio_size"` // bytes; nil until a URL's audio was fetched
	MD5           *string               `json:"audio_md5"`  // 32 hexadecimal digits; nil whenever Size is nil
	AllowTraining bool                  `json:"allow_training"`
	ErrorMessage  *string               `json:"error_message"`
	Options       spec.EffectiveOptions `json:"options"`
	CreatedAt     time.Time             `json:"created_at"`
	UpdatedAt     time.Time             `json:"updated_at"`
	FinishedAt    *time.Time            `json:"finished_at"` // nil until the state is final
	Warnings      []spec.Warning        `json:"warnings"`    // about the recording of a finished task
}

// Submission describes a new task, besides its audio. Its JSON is the body of
// the request.
type Submission struct {
	// Filename is the recording's name, in lists and files; its extension says
	// nothing. It is required with Upload and defaults to a URL's last segment.
	Filename string       `json:"audio_filename,omitempty"`
	Options  spec.Options `json:"options"`
	// CallbackURL receives a POST when the task is final, signed with
	// CallbackSecret unless that is empty.
	CallbackURL    string `json:"callback_url,omitempty"`
	CallbackSecret string `json:"callback_secret,omitempty"`
	// Batch queues the task behind others at a discount, for up to 24 hours.
	Batch         bool `json:"batch_mode,omitempty"`
	AllowTraining bool `json:"allow_training,omitempty"`
	// IdempotencyKey makes repeated submissions safe: within 24 hours the same
	// key returns the first task again. "" means a new random key, so that the
	// retries of one call never create two tasks.
	IdempotencyKey string `json:"-"`
}

func (s Submission) header() http.Header {
	return http.Header{"Idempotency-Key": {cmp.Or(s.IdempotencyKey, uuid.NewString())}}
}

// Submit creates a task for the audio at a public URL.
func (c *Client) Submit(ctx context.Context, audioURL string, s Submission) (t Task, err error) {
	in := struct {
		URL string `json:"audio_url,omitempty"`
		Submission
	}{audioURL, s}
	err = c.callWith(ctx, http.MethodPost, "/tasks", s.header(), in, &t)
	return t, err
}

// Upload creates a task for a recording, which is sent as it is read: at most
// 200 MB in Base64. A refused upload is retried only if audio is an io.Seeker.
func (c *Client) Upload(ctx context.Context, audio io.Reader, s Submission) (t Task, err error) {
	if s.Filename == "" {
		return t, errors.New("client: Submission.Filename: an upload needs a file name with its extension")
	}
	head, err := json.Marshal(s)
	if err != nil {
		return t, fmt.Errorf("client: %w", err)
	}
	head = append(head[:len(head)-1], `,"audio_base64":"`...)
	again, seekable := audio.(io.Seeker)
	var last *upload
	body := func() io.Reader {
		if last != nil {
			_ = last.Close() // the transport may still be reading
			if _, err := again.Seek(0, io.SeekStart); err != nil {
				failed, w := io.Pipe()
				w.CloseWithError(err)
				return failed
			}
		}
		last = newUpload(head, audio, `"}`)
		return last
	}
	sender := *c
	if !seekable {
		sender.Retries = 0
	}
	err = sender.send(ctx, http.MethodPost, "/tasks", s.header(), body, &t)
	return t, err
}

// BatchItem is the result for one URL of a batch: a Task or an error.
type BatchItem struct {
	Index    int    `json:"index"`
	AudioURL string `json:"audio_url"`
	Success  bool   `json:"success"`
	Task     *Task  `json:"task"`
	Error    string `json:"error"`
}

// SubmitBatch creates a task of the batch queue for each URL, at most 100. Each
// task succeeds or fails by itself. The file names are those in filenames,
// which may be nil; s.Filename is ignored.
func (c *Client) SubmitBatch(ctx context.Context, audioURLs, filenames []string, s Submission) ([]BatchItem, error) {
	in := struct {
		Submission
		URLs      []string `json:"audio_url"`
		Filenames []string `json:"audio_filename,omitempty"`
		Batch     bool     `json:"batch_mode"`
	}{s, audioURLs, filenames, true}
	var out struct {
		Results []BatchItem `json:"results"`
	}
	err := c.callWith(ctx, http.MethodPost, "/tasks/batch", s.header(), in, &out)
	return out.Results, err
}

// Task returns the task with an id.
func (c *Client) Task(ctx context.Context, id string) (t Task, err error) {
	err = c.call(ctx, http.MethodGet, "/tasks/"+url.PathEscape(id), nil, &t)
	return t, err
}

// Tasks returns a page of the account's tasks, newest first, and the total
// number of tasks. page counts from 1, size is at most 100; 0 means the
// service's default. An empty status selects all tasks.
func (c *Client) Tasks(ctx context.Context, status Status, page, size int) (tasks []Task, total int, err error) {
	var out struct {
		Tasks []Task `json:"tasks"`
		Total int    `json:"total"`
	}
	query := pageQuery(page, size)
	if status != "" {
		query.Set("status", string(status))
	}
	err = c.call(ctx, http.MethodGet, "/tasks?"+query.Encode(), nil, &out)
	return out.Tasks, out.Total, err
}

func pageQuery(page, size int) url.Values {
	query := url.Values{}
	if page != 0 {
		query.Set("page", strconv.Itoa(page))
	}
	if size != 0 {
		query.Set("page_size", strconv.Itoa(size))
	}
	return query
}

// TaskError is returned for a task that ended without a result.
type TaskError struct{ Task Task }

// Error returns the task's state and reason.
func (e *TaskError) Error() string {
	reason := *cmp.Or(e.Task.ErrorMessage, new("unknown reason"))
	return fmt.Sprintf("task %s is %s: %s", e.Task.ID, e.Task.Status, reason)
}

// The delays between two status requests: short at first, because short
// recordings take a second, and then the specification's recommendation.
const (
	firstPoll = 250 * time.Millisecond
	lastPoll  = 4 * time.Second
)

// Wait waits until a task is done and returns its result. For a task that
// failed permanently or was abandoned, the error is a *TaskError.
func (c *Client) Wait(ctx context.Context, id string) (*Result, error) {
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		t, err := c.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		switch {
		case t.Status == Done:
			return c.Result(ctx, id)
		case t.FinishedAt != nil:
			return nil, &TaskError{t}
		}
		if !backoff.Sleep(ctx, pause) {
			return nil, fmt.Errorf("client: task %s is not final: %w", id, ctx.Err())
		}
	}
}

// Result is a task's result with its bill.
type Result struct {
	spec.Result
	TaskID  string
	Billing Billing
	// Recognized are the speakers that Options.Voices recognized.
	Recognized []Recognized
	// Notices are the warnings about the recording (Option spec.WarnAudio) and,
	// with Options.Voices, why no speaker could be recognized.
	Notices []spec.Warning
}

// Recognized is a speaker whose voice is, or may be, registered with the account.
type Recognized struct {
	Speaker string  `json:"speaker"` // in SpeakerEmbeddings
	Name    string  `json:"name"`    // the name in Segments and DiarizeSegments
	Cosine  float64 `json:"cosine"`  // cosine similarity to the registered voice
	// Probability that the speaker is this person, 0 to 1.
	Probability float64 `json:"probability"`
	// Suggested reports that the name is too uncertain to be in Segments.
	Suggested bool `json:"suggested"`
}

// UnmarshalJSON reads the specification's Task result.
func (r *Result) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &r.Result); err != nil {
		return err
	}
	more := struct {
		TaskID     *string         `json:"task_id"`
		Billing    *Billing        `json:"billing"`
		Recognized *[]Recognized   `json:"voices"`
		Notices    *[]spec.Warning `json:"warnings"`
	}{&r.TaskID, &r.Billing, &r.Recognized, &r.Notices}
	return json.Unmarshal(data, &more)
}

// Billing is the cost of a task, in the currency of the account.
type Billing struct {
	Mode            string  `json:"mode"` // "standard" or "zh_lite", the optimized tier
	BillableMinutes float64 `json:"billable_minutes"`
	Amount          float64 `json:"amount"`
	Balance         float64 `json:"balance"` // the account's current balance
	Detail          struct {
		BasePricePerHour    float64  `json:"base_price_per_hour"`
		BaseAmount          float64  `json:"base_amount"`
		DiarizePricePerHour *float64 `json:"diarize_price_per_hour"`
		DiarizeAmount       *float64 `json:"diarize_amount"`
		EventsPricePerHour  *float64 `json:"events_price_per_hour"`
		EventsAmount        *float64 `json:"events_amount"`
		Subtotal            float64  `json:"subtotal"`
		BatchDiscount       *float64 `json:"batch_discount"`
		Total               float64  `json:"total"`
	} `json:"detail"`
}

// Result returns the result of a task that is done, with its corrections but
// for the names of speakers. For any other task, the error is an *Error with
// the status 404.
func (c *Client) Result(ctx context.Context, id string) (*Result, error) {
	var r Result
	if err := c.call(ctx, http.MethodGet, taskPath(id, "result"), nil, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Delete deletes a task with its audio and result. For a running task, the
// error is an *Error with the status 409.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/tasks/"+url.PathEscape(id), nil, nil)
}

// upload is a request body that encodes its source while it is sent.
type upload struct {
	*io.PipeReader
	done chan struct{} // closed when the source is no longer read
}

// newUpload returns a body of head, audio in Base64, and tail.
func newUpload(head []byte, audio io.Reader, tail string) *upload {
	r, w := io.Pipe()
	u := &upload{r, make(chan struct{})}
	go func() {
		defer close(u.done)
		_, err := w.Write(head)
		text := base64.NewEncoder(base64.StdEncoding, w)
		if err == nil {
			_, err = io.Copy(text, audio)
		}
		if err = errors.Join(err, text.Close()); err == nil {
			_, err = io.WriteString(w, tail)
		}
		w.CloseWithError(err)
	}()
	return u
}

// Close implements io.Closer. It waits until the source is no longer read.
func (u *upload) Close() error {
	err := u.PipeReader.Close()
	<-u.done
	return err
}
