package test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mounting is a program that mounts the service with a pipeline in its own
// server. Without imports and error handling, it has 15 lines at most.
const mounting = `package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/service"
	"github.com/otograph/otograph/service/engine"
)

func main() {
	p, err := otograph.Open(demo.Models())
	check(err)
	s, err := service.Open(context.Background(), service.Config{
		Folder: os.Args[1], Engine: engine.New(p, "", nil),
		TrustedProxies: []string{"127.0.0.1"}, KeepTasks: 24 * time.Hour,
	})
	check(err)
	go s.Run(context.Background())
	http.Handle("/v1/", s.Handler())
	http.Handle("/metrics", s.OpsHandler())
	http.Handle("/readyz", s.OpsHandler())
	check(http.ListenAndServe(os.Args[2], nil))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`

// TestMountedService runs the same tests on a program that mounts the service
// and, except in the short form, on serve.
func TestMountedService(t *testing.T) {
	t.Parallel()
	t.Run("serve", func(t *testing.T) {
		if testing.Short() {
			t.Skip("at length: make test-extent")
		}
		t.Parallel()
		s := serve(t, t.TempDir(), "--trusted-proxies", "127.0.0.1", "--keep-tasks", "24h")
		checkService(t, s.unlimited())
	})
	t.Run("mounted", func(t *testing.T) {
		t.Parallel()
		_, body, _ := strings.Cut(mounting, "func main() {\n")
		body, _, _ = strings.Cut(body, "\n}\n")
		assert.LessOrEqual(t, strings.Count(body, "\n")+1, 15)
		checkService(t, mounted(t).unlimited())
	})
}

// mounted runs the program mounting, with an account as a first start creates
// it.
func mounted(t *testing.T) *server {
	t.Helper()
	program := asCommand(t, mounting)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	s := &server{t: t, url: "http://" + address + "/v1", data: filepath.Join(t.TempDir(), "data")}
	s.log, err = os.CreateTemp(t.TempDir(), "mounted-*.log")
	require.NoError(t, err)
	s.cmd = exec.Command(program, s.data, address)
	s.cmd.Env = append(os.Environ(), "OTOGRAPH_DATABASE=", "OTOGRAPH_BLOBS=")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	}, patience, 50*time.Millisecond, "%s", s.logged())
	s.key = s.account("local", "1000")
	return s
}

// checkService checks that a service processes tasks, follows the rotation of
// the token key, trusts its proxy, deletes old tasks, and exports metrics.
func checkService(t *testing.T, s *server) {
	id := s.create(upload(clip(t, 5, 5), nil))
	done := s.wait(id)
	require.Equal(t, "done", done["status"], "%v", done["error_message"])
	result := s.result(id)
	assert.Contains(t, result, "billing")
	segments, _ := result["segments"].([]any)
	require.NotEmpty(t, segments)
	for _, segment := range segments {
		assert.NotContains(t, segment, "confidence", "the specification has none")
	}

	const password = "correct horse battery"
	s.must("user", "create", "local", "ann", "--password", password)
	login := func(password, from string) answer {
		return s.do("POST", "/auth/login", map[string]any{"username": "ann", "password": password}, "X-Forwarded-For", from)
	}
	for login("wrong", "203.0.113.1").status != 429 {
	}
	token, _ := login(password, "203.0.113.2").object(t)["access_token"].(string)
	require.NotEmpty(t, token, "failures from one address do not refuse another one")
	with := func(token string) int {
		return s.do("GET", "/account", nil, "X-API-Key", "", "Authorization", "Bearer "+token).status
	}
	require.Equal(t, 200, with(token))
	s.must("user", "logout", "--all")
	require.Eventually(t, func() bool { return with(token) == 401 }, patience, 100*time.Millisecond)

	metrics := string(s.do("GET", "//metrics", nil).body)
	for _, name := range []string{
		"otograph_http_requests_total{", "otograph_queue_waiting{", "otograph_workers 1", "otograph_database_seconds_count{", "otograph_store_seconds_count{",
		"otograph_cage{", "otograph_chore_done_timestamp_seconds{", `otograph_outage{member="fetcher"`, "otograph_build_info",
	} {
		assert.Contains(t, metrics, name)
	}
	require.Eventually(t, func() bool { // a worker process writes its metrics periodically
		metrics := string(s.do("GET", "//metrics", nil).body)
		return strings.Contains(metrics, "otograph_runs_total{outcome=\"done\"") && strings.Contains(metrics, `otograph_outage{member="worker"`)
	}, patience, 100*time.Millisecond)

	d := s.store()
	change(t, d, "UPDATE tasks SET finished_at = finished_at - $1", (25 * time.Hour).Microseconds())
	require.Eventually(t, func() bool { return s.do("GET", "/tasks/"+id, nil).status == 404 }, patience, 500*time.Millisecond, "old tasks go")
}
