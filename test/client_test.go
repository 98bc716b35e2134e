package test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	bin "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/system/db"
)

// patience is how long a test waits for an expected event: far longer than
// usual, so that a slow machine causes no failure.
const patience = 4 * time.Minute

// client times out before a test does.
var client = &http.Client{
	Timeout:   patience,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, ExpectContinueTimeout: time.Minute},
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(a.body, &m), "%d %.300s", a.status, a.body)
	return m
}

// code returns the error_code of an error response, which must also have error.
func (a answer) code(t testing.TB) any {
	t.Helper()
	m := a.object(t)
	assert.NotEmpty(t, m["error"], "%d %.300s", a.status, a.body)
	return m["error_code"]
}

// do sends one request with the key of "local", unless headers (name, value, …)
// contain another one; "X-API-Key", "" sends none. A body that is not a string,
// bytes or a reader is sent as JSON.
func (s *server) do(method, path string, body any, headers ...string) answer {
	s.t.Helper()
	a, err := s.try(method, path, body, headers...)
	require.NoError(s.t, err, "%s %s", method, path)
	return a
}

// try is like do for a server that may be unavailable.
func (s *server) try(method, path string, body any, headers ...string) (answer, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	case io.Reader:
		r = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		r = bytes.NewReader(text)
	}
	target := s.url + path
	if strings.HasPrefix(path, "//") { // a path outside the base path
		target = strings.TrimSuffix(s.url, "/v1") + path[1:]
	}
	req, err := http.NewRequest(method, target, r)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("X-API-Key", s.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header[http.CanonicalHeaderKey(headers[i])] = []string{headers[i+1]}
		}
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, b}, err
}

// create submits a task and returns its id.
func (s *server) create(body any, headers ...string) string {
	s.t.Helper()
	a := s.do("POST", "/tasks", body, headers...)
	require.Equal(s.t, 201, a.status, "%.500s", a.body)
	id, _ := a.object(s.t)["id"].(string)
	return id
}

func (s *server) task(id string) map[string]any {
	s.t.Helper()
	a := s.do("GET", "/tasks/"+id, nil)
	require.Equal(s.t, 200, a.status, "%s", a.body)
	return a.object(s.t)
}

func (s *server) result(id string) map[string]any {
	s.t.Helper()
	a := s.do("GET", "/tasks/"+id+"/result", nil)
	require.Equal(s.t, 200, a.status, "%s", a.body)
	return a.object(s.t)
}

// must runs a command on the server's data and returns its output.
func (s *server) must(args ...string) string {
	s.t.Helper()
	out, err := s.run(args...)
	require.NoError(s.t, err, "%v: %s", args, out)
	return strings.TrimSpace(out)
}

// unlimited lifts the limits of "local", which has a small customer's by
// default.
func (s *server) unlimited() *server {
	s.t.Helper()
	many, rate := 1_000_000, 1e6
	d := s.store()
	people := accounts.New(d, nil, nil)
	local, err := people.Find(context.Background(), "local")
	require.NoError(s.t, err)
	require.NoError(s.t, people.SetLimits(context.Background(), local.ID, accounts.Overrides{Concurrency: &many, TPS: &rate, Burst: &many}))
	require.NoError(s.t, d.Close())
	time.Sleep(250 * time.Millisecond) // a server reloads limits after 200 ms
	return s
}

// account creates another account with some credit and returns a key for it.
func (s *server) account(name, credit string) (key string) {
	s.t.Helper()
	s.must("account", "create", name)
	if credit != "0" {
		s.must("account", "credit", name, credit)
	}
	return s.must("key", "create", name)
}

// store opens the server's database, to inspect internal state and to move
// scheduled times forward.
func (s *server) store() *db.DB {
	s.t.Helper()
	source := s.database
	if source == "" {
		source = filepath.Join(s.data, "otograph.db")
	}
	d, err := db.Open(context.Background(), source, db.Options{MaxConns: 2, BusyTimeout: time.Minute})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { d.Close() })
	return d
}

func count(t testing.TB, d *db.DB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, d.Read().QueryRowContext(context.Background(), query, args...).Scan(&n), query)
	return n
}

func change(t testing.TB, d *db.DB, statement string, args ...any) {
	t.Helper()
	require.NoError(t, d.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(context.Background(), statement, args...)
		return err
	}))
}

// exact checks the accounting of a database: every balance is the sum of its
// ledger, whose chain has no gap; a task is charged once when it is done and
// otherwise never; only unfinished tasks hold money; the queue agrees.
func exact(t testing.TB, d *db.DB) {
	t.Helper()
	for says, query := range map[string]string{
		"balance = Σ ledger":              `SELECT COUNT(*) FROM accounts a WHERE balance <> COALESCE((SELECT SUM(amount) FROM ledger l WHERE l.account_id = a.id), 0)`,
		"the ledger's chain":              `SELECT COUNT(*) FROM (SELECT balance_before, LAG(balance_after, 1, 0) OVER (PARTITION BY account_id ORDER BY seq) AS previous FROM ledger) x WHERE balance_before <> previous`,
		"charged once":                    `SELECT COUNT(*) FROM (SELECT task_id FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id HAVING COUNT(*) > 1) x`,
		"done tasks are charged":          `SELECT COUNT(*) FROM tasks WHERE status = 'done' AND id NOT IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`,
		"only done tasks are charged":     `SELECT COUNT(*) FROM tasks WHERE status <> 'done' AND id IN (SELECT task_id FROM ledger WHERE task_id IS NOT NULL)`,
		"the charge is the total":         `SELECT COUNT(*) FROM settlements s JOIN ledger l ON l.task_id = s.task_id WHERE -l.amount <> s.total - s.from_packs`,
		"finished tasks hold nothing":     `SELECT COUNT(*) FROM holds WHERE task_id NOT IN (SELECT id FROM tasks WHERE phase <> 'final')`,
		"unfinished tasks hold something": `SELECT COUNT(*) FROM tasks WHERE phase <> 'final' AND id NOT IN (SELECT task_id FROM holds)`,
	} {
		assert.Zero(t, count(t, d, query), says)
	}
}

// park postpones the next attempt of a task that failed temporarily by an hour,
// regardless of its number of retries.
func park(t testing.TB, d *db.DB, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		change(t, d, "UPDATE tasks SET run_at = run_at + 3600000000 WHERE id = $1 AND phase IN ('queued', 'delayed') AND failures > 0 AND run_at - updated_at < 1800000000", id)
		return count(t, d, "SELECT COUNT(*) FROM tasks WHERE id = $1 AND phase IN ('queued', 'delayed') AND failures > 0 AND run_at - updated_at > 1800000000", id) == 1
	}, patience, 50*time.Millisecond)
}

// files returns the regular files below a folder, by their relative paths.
func files(t testing.TB, dir string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(name))
		}
		return err
	}))
	return found
}

var conversation = sync.OnceValues(func() ([]float32, error) {
	pcm, err := audio.Open(context.Background(), audio.File("../testdata/conversation.flac"), audio.Options{})
	if err != nil {
		return nil, err
	}
	defer pcm.Close()
	return append([]float32{}, pcm.Samples(0, pcm.Len())...), nil
})

// clip returns a piece of the bundled conversation as a WAV file; times in
// seconds.
func clip(t testing.TB, from, length float64) []byte {
	t.Helper()
	samples, err := conversation()
	require.NoError(t, err)
	begin := int(from * audio.SampleRate)
	return wav(samples[begin : begin+int(length*audio.SampleRate)])
}

// wav writes samples as a 16-bit WAV file of 16 kHz.
func wav(samples []float32) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = bin.Write(&b, bin.LittleEndian, v)
		}
	}
	size := uint32(2 * len(samples))
	put([]byte("RIFF"), 36+size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(audio.SampleRate), uint32(2*audio.SampleRate), uint16(2), uint16(16), []byte("data"), size)
	for _, v := range samples {
		put(int16(v * 32767))
	}
	return b.Bytes()
}

// upload returns a submission of audio as Base64; more holds further fields.
func upload(audio []byte, options map[string]any, more ...any) map[string]any {
	m := map[string]any{"audio_filename": "clip.wav", "audio_base64": base64.StdEncoding.EncodeToString(audio)}
	if options != nil {
		m["options"] = options
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// quick holds the options of the cheapest task: speech only, optimized tier,
// the language given.
var quick = map[string]any{"enable_diarize": false, "enable_audio_events": false, "optimize": true, "asr_language": "en"}

// delivered is one request to a receiver of callbacks.
type delivered struct {
	header http.Header
	body   []byte
	at     time.Time
}

// customer simulates a customer's servers: files to fetch, and a receiver of
// callbacks.
type customer struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte      // by path
	asked map[string]int         // requests by path
	calls map[string][]delivered // by task
	fail  map[string]bool        // paths of receivers that respond with 500
	hold  chan struct{}          // /held.wav is served after it is closed
}

func newCustomer(t testing.TB) *customer {
	o := &customer{files: map[string][]byte{}, asked: map[string]int{}, calls: map[string][]delivered{}, fail: map[string]bool{}, hold: make(chan struct{})}
	o.Server = httptest.NewServer(http.HandlerFunc(o.answer))
	t.Cleanup(o.Close)
	return o
}

func (o *customer) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	o.asked[r.URL.Path]++
	file, there := o.files[r.URL.Path]
	failing := o.fail[r.URL.Path]
	if r.Method == http.MethodPost {
		var m struct {
			ID string `json:"task_id"`
		}
		_ = json.Unmarshal(body, &m)
		o.calls[m.ID] = append(o.calls[m.ID], delivered{r.Header.Clone(), body, time.Now()})
	}
	o.mu.Unlock()
	switch {
	case failing || r.URL.Path == "/broken.wav":
		http.Error(w, "out of order", http.StatusInternalServerError)
	case r.Method == http.MethodPost:
	case r.URL.Path == "/endless.wav":
		w.Header().Set("Content-Length", fmt.Sprint(int64(2<<30)+1))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(make([]byte, 1<<16))
		<-r.Context().Done()
	case r.URL.Path == "/held.wav":
		select {
		case <-o.hold:
		case <-r.Context().Done():
		}
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(file))
	case r.URL.Path == "/moved.wav":
		http.Redirect(w, r, "/talk.wav", http.StatusFound)
	case there:
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(file))
	default:
		http.NotFound(w, r)
	}
}

// callbacks returns the deliveries for one task.
func (o *customer) callbacks(id string) []delivered {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]delivered{}, o.calls[id]...)
}

// host returns the host to name in --allow-outbound.
func (o *customer) host() string { return strings.TrimPrefix(o.URL, "http://") }

// residentSet returns the memory of a process in bytes, from /proc.
func residentSet(t testing.TB, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skipf("the kernel does not tell: %v", err)
	}
	var size, pages int64
	_, err = fmt.Sscan(string(text), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// peakOver watches the resident set of a process during work and returns its
// maximum growth in bytes.
func peakOver(t testing.TB, pid int, work func()) (growth int64) {
	t.Helper()
	before := residentSet(t, pid)
	peak := before
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				peak = max(peak, residentSet(t, pid))
			}
		}
	}()
	work()
	close(stop)
	<-stopped
	return peak - before
}
