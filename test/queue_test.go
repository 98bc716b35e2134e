package test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// queueList is the output of `otograph queue list --json`.
type queueList struct {
	Lanes []struct {
		Lane    string `json:"lane"`
		Paused  bool   `json:"paused"`
		Waiting int    `json:"waiting"`
		Oldest  string `json:"oldest"`
	} `json:"lanes"`
	Accounts []struct {
		Account string `json:"account"`
		Waiting int    `json:"waiting"`
	} `json:"accounts"`
	Workers []struct {
		ID string `json:"id"`
	} `json:"workers"`
}

// TestOperatorSteersTheQueue pauses a lane, cancels and retries a task, and
// finds every task charged once or not at all.
func TestOperatorSteersTheQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--workers", "1").unlimited()
	queue := func(args ...string) string { return s.must(append([]string{"queue"}, args...)...) }
	list := func() (l queueList) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(queue("list", "--json")), &l))
		return l
	}
	queue("pause", "tasks")
	body := upload(clip(t, 8, 1.5), quick)
	kept, canceled, retried := s.create(body), s.create(body), s.create(body)

	l := list()
	require.Len(t, l.Lanes, 3)
	require.Equal(t, "tasks", l.Lanes[0].Lane)
	assert.True(t, l.Lanes[0].Paused)
	assert.Equal(t, 3, l.Lanes[0].Waiting)
	assert.NotEmpty(t, l.Lanes[0].Oldest)
	require.Len(t, l.Accounts, 1)
	assert.Equal(t, "local", l.Accounts[0].Account)
	assert.Equal(t, 3, l.Accounts[0].Waiting)
	text := queue("list")
	assert.Regexp(t, `(?m)^tasks +paused +3 +0 +0 +[0-9]+s$`, text)
	assert.Equal(t, 3, strings.Count(queue("list", "tasks"), "queued"))

	queue("cancel", canceled)
	out := queue("cancel", "--keep-audio", "1h", retried)
	assert.Contains(t, out, "canceled by the operator")
	out, err := s.run("queue", "cancel", canceled)
	require.Error(t, err)
	assert.Contains(t, out, "task has ended")
	status, task := s.call("GET", "/tasks/"+canceled, nil)
	assert.Equal(t, 200, status)
	assert.Equal(t, "failed", task["status"])
	assert.Contains(t, queue("list", "tasks", "--ended", "--account", "local"), canceled)
	queue("retry", retried)

	require.Eventually(t, func() bool { l = list(); return len(l.Workers) == 1 }, patience, 100*time.Millisecond)
	shown := []string{"otograph_workers 1", `otograph_lane_paused{lane="tasks"} 1`, "otograph_worker_restarts_total 0", `otograph_queue_waiting{lane="tasks"} 2`}
	require.Eventually(t, func() bool { // the state of workers is checked every 2 s
		metrics := string(s.do("GET", "//metrics", nil).body)
		return !slices.ContainsFunc(shown, func(line string) bool { return !strings.Contains(metrics, "\n"+line+"\n") })
	}, patience, 100*time.Millisecond, "%q", shown)
	queue("pause", "tasks", "--undo")
	for _, id := range []string{kept, retried} {
		assert.Equal(t, "done", s.wait(id)["status"])
	}
	_, account := s.call("GET", "/account", nil)
	assert.Zero(t, account["held_amount"])
	_, ledger := s.call("GET", "/billing/transactions", nil)
	charged := map[any]int{}
	for _, entry := range ledger["transactions"].([]any) {
		if e := entry.(map[string]any); e["type"] == "deduction" {
			charged[e["task_id"]]++
		}
	}
	assert.Equal(t, map[any]int{kept: 1, retried: 1}, charged)
}
