package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/billing"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/webhook"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// post is a delivery as its receiver saw it.
type post struct {
	at      time.Time
	url     string
	headers http.Header
	body    string
}

// postbox is a safehttp.Doer that records deliveries and answers by script.
type postbox struct {
	mu     sync.Mutex
	posts  []post
	answer func(n int, r *http.Request) (*http.Response, error)
}

func (p *postbox) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	n := len(p.posts)
	p.posts = append(p.posts, post{time.Now(), r.URL.String(), r.Header.Clone(), string(body)})
	p.mu.Unlock()
	return p.answer(n, r)
}

func (p *postbox) all() []post {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]post(nil), p.posts...)
}

func respond(status int, body io.Reader) (*http.Response, error) {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// tornReader is a body that fails in the middle.
type tornReader struct{ done bool }

func (r *tornReader) Read(p []byte) (int, error) {
	if r.done {
		return 0, io.ErrUnexpectedEOF
	}
	r.done = true
	return copy(p, "half"), nil
}

// startNotifier runs a notifier until stop is called.
func startNotifier(f *taskstest.Fixture, c webhook.NotifierConfig) (stop func()) {
	f.T.Helper()
	n, err := webhook.NewNotifier(f.Outbox(), f.Queue(), c)
	require.NoError(f.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = n.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// finish creates a task with a callback and ends it.
func finish(f *taskstest.Fixture, url, secret string) tasks.Task {
	f.T.Helper()
	task := f.Add(func(r *tasks.Request) { r.CallbackURL, r.CallbackSecret = url, secret })
	c, err := f.Next(context.Background(), "w", "m")
	require.NoError(f.T, err)
	require.NoError(f.T, f.Complete(context.Background(), c, tasks.Outcome{Seconds: 1}))
	return f.Row(task.ID)
}

// TestUnconfirmedClaimIsSentOnce breaks the connection at the commit of a claim
// or of an outcome, before or after the database commits it: the notifier
// continues, and the callback is still delivered once and counted once.
func TestUnconfirmedClaimIsSentOnce(t *testing.T) {
	for name, lost := range map[string]struct {
		commit int // after the first heartbeat
		after  bool
	}{"claim, committed": {2, true}, "claim, rolled back": {2, false}, "outcome, committed": {3, true}, "outcome, rolled back": {3, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				commits, armed := 0, false
				f := taskstest.New(t, dbtest.SQLite(t, db.Options{Wrap: dbtest.Faulty(func(c dbtest.Call) (after bool, err error) {
					if c.Op == "commit" && armed {
						if commits++; commits == lost.commit {
							return lost.after, io.ErrUnexpectedEOF
						}
					}
					return false, nil
				})}))
				box := &postbox{answer: func(int, *http.Request) (*http.Response, error) { return respond(200, strings.NewReader("")) }}
				finish(f, "https://receiver.example/", "")
				armed = true
				stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Heartbeat: time.Hour})
				time.Sleep(time.Minute)
				assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'delivered' AND attempts = 1"), "while the notifier runs")
				stop()
				assert.Len(t, box.all(), 1)
			})
		})
	}
}

// TestCallbacksAreTriedOnScheduleThenAbandoned has receivers that fail in every
// way: attempts come at 0, 1, 5 and 30 s after the previous failure, with the
// same bytes, and then stop. It covers T10 of test/README.md.
func TestCallbacksAreTriedOnScheduleThenAbandoned(t *testing.T) {
	answers := map[string]func(n int, r *http.Request) (*http.Response, error){
		"down": func(int, *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		"slow": func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"500":         func(int, *http.Request) (*http.Response, error) { return respond(500, strings.NewReader("no")) },
		"redirecting": func(int, *http.Request) (*http.Response, error) { return respond(302, strings.NewReader("there")) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
				box := &postbox{answer: answer}
				task := finish(f, "https://receiver.example/hook?a=1", "geheim")
				begun := time.Now()
				stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Poll: virtualPoll})
				time.Sleep(100 * time.Second)
				stop()
				posts := box.all()
				require.Len(t, posts, 4)
				var gaps []string
				lag := time.Duration(0)
				if name == "slow" {
					lag = 15 * time.Second // the delivery's time limit
				}
				want := []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second}
				last := begun
				for i, p := range posts {
					gap := p.at.Sub(last)
					if i > 0 {
						gap -= lag
					}
					last = p.at
					assert.GreaterOrEqual(t, gap, want[i])
					assert.LessOrEqual(t, gap, want[i]+virtualPoll+5*time.Millisecond, "attempt %d", i+1)
					gaps = append(gaps, fmt.Sprintf("%.2f", gap.Seconds()))
					assert.Equal(t, posts[0].body, p.body, "identical bytes")
					assert.Equal(t, posts[0].headers["X-Signature"], p.headers["X-Signature"], "identical signature")
					assert.Equal(t, posts[0].headers["Webhook-Id"], p.headers["Webhook-Id"], "one id")
					assert.Equal(t, fmt.Sprint(p.at.Unix()), p.headers.Get("Webhook-Timestamp"))
				}
				assert.JSONEq(t, fmt.Sprintf(`{"task_id":%q,"status":"done","created_at":%q,"finished_at":%q,"error_message":null}`,
					task.ID, task.CreatedAt.Format(spec.TimeFormat), task.FinishedAt.Format(spec.TimeFormat)), posts[0].body)
				given, err := f.Outbox().List(t.Context(), webhook.Filter{Phase: "given_up"})
				require.NoError(t, err)
				require.Len(t, given, 1)
				assert.Equal(t, 4, given[0].Attempts)
				assert.NotEmpty(t, given[0].LastError)
				assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'"))

				// An abandoned callback can be sent again, with the same id and
				// bytes.
				require.NoError(t, f.Outbox().Resend(t.Context(), task.ID))
				require.NoError(t, f.Outbox().Resend(t.Context(), task.ID), "already on its way")
				box.answer = func(int, *http.Request) (*http.Response, error) { return respond(204, &tornReader{}) }
				stop = startNotifier(f, webhook.NotifierConfig{HTTP: box, Poll: virtualPoll})
				time.Sleep(time.Second)
				stop()
				posts = box.all()
				require.Len(t, posts, 5, "a receiver that closes in the middle of its 2xx response has accepted it")
				assert.Equal(t, posts[0].body, posts[4].body)
				assert.Equal(t, posts[0].headers["Webhook-Id"], posts[4].headers["Webhook-Id"])
				t.Logf("T10: receiver %s: attempts after %s s, then abandoned; sent again on request", name, strings.Join(gaps, ", "))
			})
		})
	}
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	require.ErrorIs(t, f.Outbox().Resend(t.Context(), "none"), webhook.ErrNotFound)
}

// TestReceiversDelayTheNextAttempt: Retry-After postpones the scheduled attempt
// up to a limit, 410 ends the deliveries, and a tail of attempts follows the
// schedule.
func TestReceiversDelayTheNextAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		after  string
		tail   []time.Duration
		want   []time.Duration // between deliveries
	}{
		"seconds":              {503, "45", nil, []time.Duration{45 * time.Second, 45 * time.Second, 45 * time.Second}},
		"fewer than scheduled": {429, "2", nil, []time.Duration{2 * time.Second, 5 * time.Second, 30 * time.Second}},
		"a date":               {503, "date", nil, []time.Duration{time.Minute, 5 * time.Second, 30 * time.Second}},
		"a year":               {503, "31536000", nil, []time.Duration{15 * time.Minute, 15 * time.Minute, 15 * time.Minute}},
		"nonsense":             {503, "-1 soon", nil, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}},
		"gone":                 {410, "1", nil, nil},
		"a tail":               {500, "", []time.Duration{10 * time.Minute, 20 * time.Minute}, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 10 * time.Minute, 20 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(config *tasks.Config) { config.CallbackTail = c.tail })
				after := c.after
				if after == "date" {
					after = time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
				}
				box := &postbox{answer: func(int, *http.Request) (*http.Response, error) {
					response, err := respond(c.status, strings.NewReader(""))
					if after != "" {
						response.Header = http.Header{"Retry-After": {after}}
					}
					return response, err
				}}
				finish(f, "https://busy.example/", "secret")
				stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Poll: time.Second, Heartbeat: time.Hour})
				whole := 16 * time.Minute // longer than any pause that a receiver may request
				for _, pause := range c.want {
					whole += pause
				}
				time.Sleep(whole)
				stop()
				var got []time.Duration
				all := box.all()
				for i := 1; i < len(all); i++ {
					got = append(got, all[i].at.Sub(all[i-1].at))
				}
				require.Len(t, got, len(c.want))
				for i := range got {
					assert.InDelta(t, c.want[i].Seconds(), got[i].Seconds(), 2, "delivery %d", i+2)
				}
				assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'"))
			})
		})
	}
}

// TestAnyStatusIsNoted: a receiver's status of any bytes is stored, also by
// PostgreSQL, which refuses texts that are not UTF-8; otherwise the receiver
// would be called forever.
func TestAnyStatusIsNoted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		box := &postbox{answer: func(int, *http.Request) (*http.Response, error) {
			response, err := respond(http.StatusGone, strings.NewReader(""))
			response.Status = "410 \xff\x00" + strings.Repeat("long", 1000)
			return response, err
		}}
		finish(f, "https://odd.example/", "")
		defer startNotifier(f, webhook.NotifierConfig{HTTP: box})()
		require.Eventually(t, func() bool { return f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'given_up'") == 1 }, 10*time.Second, 25*time.Millisecond)
		list, err := f.Outbox().List(t.Context(), webhook.Filter{})
		require.NoError(t, err)
		assert.Contains(t, list[0].LastError, "410 \uFFFD\uFFFDlong")
		assert.Less(t, len(list[0].LastError), 200)
		assert.Len(t, box.all(), 1)
	})
}

// TestHeadersFollowBothDefinitionsOfSignatures checks the headers against the definition of both signatures.
func TestHeadersFollowBothDefinitionsOfSignatures(t *testing.T) {
	body := []byte(`{"task_id":"x"}`)
	now := time.Unix(1_700_000_000, 0)
	sign := func(key []byte, text string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	h := webhook.Headers("msg_1", "geheim", body, now)
	assert.Equal(t, "sha256="+hex.EncodeToString(sign([]byte("geheim"), string(body))), h.Get("X-Signature"))
	assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(sign([]byte("geheim"), "msg_1.1700000000."+string(body))), h.Get("Webhook-Signature"))
	// The expected value comes from openssl dgst -sha256 -hmac geheim over the
	// body.
	assert.Equal(t, "application/json", h.Get("Content-Type"))
	raw := []byte("0123456789abcdef")
	h = webhook.Headers("msg_1", "whsec_"+base64.StdEncoding.EncodeToString(raw), body, now)
	assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(sign(raw, "msg_1.1700000000."+string(body))), h.Get("Webhook-Signature"))
	h = webhook.Headers("msg_1", "", body, now)
	assert.NotContains(t, h, "X-Signature")
	assert.NotContains(t, h, "Webhook-Signature")
	assert.Equal(t, "msg_1", h.Get("Webhook-Id"))
}

// TestDeliveryIsRepeatedUnlessRecorded stops a notifier between a delivery and
// its record. It covers T27 of test/README.md.
func TestDeliveryIsRepeatedUnlessRecorded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		task := finish(f, "https://receiver.example/", "s")
		box := &postbox{answer: func(int, *http.Request) (*http.Response, error) { return respond(200, strings.NewReader("")) }}
		n, err := webhook.NewNotifier(f.Outbox(), f.Queue(), webhook.NotifierConfig{HTTP: box})
		require.NoError(t, err)
		first, err := f.Outbox().Next(t.Context(), "dying", webhook.Busy{})
		require.NoError(t, err)
		require.NoError(t, n.Post(t.Context(), first)) // … and the notifier dies
		none, err := f.Outbox().Next(t.Context(), "other", webhook.Busy{})
		require.NoError(t, err)
		assert.Nil(t, none, "no other notifier sends it meanwhile")
		_, err = f.Reap(t.Context(), "dying", tasks.EndInterrupted, "lost")
		require.NoError(t, err)
		second, err := f.Outbox().Next(t.Context(), "other", webhook.Busy{})
		require.NoError(t, err)
		require.NotNil(t, second)
		require.NoError(t, f.Outbox().Note(t.Context(), first, errors.New("late")), "the dead notifier's record changes nothing …")
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'running' AND attempts = 0"))
		require.NoError(t, n.Post(t.Context(), second))
		require.NoError(t, f.Outbox().Note(t.Context(), second, nil))
		require.NoError(t, f.Outbox().Note(t.Context(), first, errors.New("late")), "… now and later")
		list, err := f.Outbox().List(t.Context(), webhook.Filter{TaskID: task.ID})
		require.NoError(t, err)
		assert.Equal(t, "delivered", list[0].Phase)
		posts := box.all()
		require.Len(t, posts, 2)
		assert.Equal(t, posts[0].headers.Get("Webhook-Id"), posts[1].headers.Get("Webhook-Id"))
		assert.Equal(t, posts[0].body, posts[1].body)
		t.Logf("T27: delivered %d times with 1 id, recorded once", len(posts))
	})
}

// TestSlowReceiversDelayNoOthers sends many callbacks to a receiver that never
// answers, and others, in virtual time. It covers T29 of test/README.md.
func TestSlowReceiversDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{NoListen: true})) // virtual time does not pass while a file is watched
		box := &postbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if r.URL.Host == "slow.example" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return respond(200, strings.NewReader("ok"))
		}}
		for range slowCallbacks {
			finish(f, "https://slow.example/", "")
		}
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box})
		time.Sleep(5 * time.Second)
		begun := time.Now()
		worst := time.Duration(0)
		for i := range 20 {
			finish(f, fmt.Sprintf("https://good%d.example/", i%3), "")
		}
		working := f.Start(1, worker.Config{Engine: taskstest.Quick, Poll: 200 * time.Millisecond})
		task := f.Add(nil)
		time.Sleep(time.Second)
		good := 0
		for _, p := range box.all() {
			if strings.Contains(p.url, "good") {
				good++
				worst = max(worst, p.at.Sub(begun))
			}
		}
		assert.Equal(t, 20, good)
		assert.Less(t, worst, 500*time.Millisecond)
		assert.Equal(t, tasks.StatusDone, f.Row(task.ID).Status, "tasks are not delayed")
		working()
		time.Sleep(slowCallbacks * 10 * time.Second)
		stop()
		slow := len(box.all()) - good
		assert.Equal(t, 4*slowCallbacks, slow, "each of them had its 4 attempts in the end")
		t.Logf("T29: while %d callbacks hung, 20 others arrived within %d ms and a task was done; the hanging ones were abandoned after %d attempts", slowCallbacks, worst.Milliseconds(), slow)
	})
}

// TestNotifierHandsBackAtItsEnd ends a notifier while a delivery hangs: the
// delivery is not counted, and another notifier sends it.
func TestNotifierHandsBackAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
		finish(f, "https://slow.example/", "")
		box := &postbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, Grace: time.Second})
		time.Sleep(2 * time.Second)
		begun := time.Now()
		stop()
		assert.LessOrEqual(t, time.Since(begun), 2*time.Second)
		assert.Equal(t, 1, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'queued' AND attempts = 0"))
		assert.Zero(t, f.Count("SELECT COUNT(*) FROM workers"))
	})
}

// TestAccountsTakeTurnsAtDeliveries: an account with many receivers that never
// answer does not delay another account's callbacks.
func TestAccountsTakeTurnsAtDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
		box := &postbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Host, "slow") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return respond(200, strings.NewReader("ok"))
		}}
		for i := range 100 {
			finish(f, fmt.Sprintf("https://slow%d.example/", i), "")
		}
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, AtOnce: 8, PerAccount: 6})
		defer stop()
		time.Sleep(5 * time.Second)
		require.Len(t, box.all(), 6, "an account gets its share of the slots")
		f.Account = f.NewAccount("other", 10*billing.Unit)
		begun := time.Now()
		for range 3 {
			finish(f, "https://good.example/", "")
		}
		time.Sleep(time.Second)
		good := 0
		for _, p := range box.all() {
			if strings.Contains(p.url, "good") {
				good++
				assert.Less(t, p.at.Sub(begun), time.Second)
			}
		}
		assert.Equal(t, 3, good)
	})
}

// TestHostsThatTimeOutShareHalfOfTheSlots: hosts that did not answer in time
// share half of the slots until they answer again.
func TestHostsThatTimeOutShareHalfOfTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := taskstest.New(t, dbtest.SQLite(t, db.Options{}), func(c *tasks.Config) {
			c.CallbackDelays = slices.Repeat([]time.Duration{time.Second}, 8)
		})
		var down atomic.Bool
		down.Store(true)
		var open, most atomic.Int64
		box := &postbox{answer: func(_ int, r *http.Request) (*http.Response, error) {
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer open.Add(-1)
			if down.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			time.Sleep(time.Second)
			return respond(200, strings.NewReader("ok"))
		}}
		for i := range 24 {
			finish(f, fmt.Sprintf("https://receiver%d.example/", i%8), "")
		}
		stop := startNotifier(f, webhook.NotifierConfig{HTTP: box, AtOnce: 8})
		defer stop()
		time.Sleep(5 * time.Second)
		assert.EqualValues(t, 8, most.Load())
		time.Sleep(60 * time.Second) // each has timed out
		most.Store(0)
		time.Sleep(40 * time.Second)
		assert.EqualValues(t, 4, most.Load())
		down.Store(false)
		time.Sleep(5 * time.Minute)
		assert.Equal(t, 24, f.Count("SELECT COUNT(*) FROM callbacks WHERE phase = 'delivered'"))
		assert.Greater(t, most.Load(), int64(4), "more, after they have answered")
	})
}
