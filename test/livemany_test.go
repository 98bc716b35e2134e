//go:build long

package test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/db"
)

// TestLiveThousandSessions opens 1,000 live sessions, which end after their text,
// in the middle of it, without a commit and without sound. Each that has sound
// is charged a minute, none leaves a task, and the processes keep no file or
// goroutine.
func TestLiveThousandSessions(t *testing.T) {
	s := serve(t, t.TempDir(), "--demo").unlimited()
	sound := raw(t, "../testdata/demo/short/en_08.flac")
	d := s.store()
	open := func(sessions int) {
		for i := range sessions {
			c := s.phone(pushToTalk + "}")
			if i%4 > 0 {
				c.speak(sound)
			}
			if i%4 > 1 {
				c.send(`{"type":"input_audio_buffer.commit"}`)
			}
			switch i % 4 {
			case 2:
				c.until("input_audio_buffer.committed")
			case 3:
				assert.Equal(t, "We want to paint the kitchen purple.", c.until(completed).Transcript)
			}
			if i%8 < 4 {
				require.NoError(t, c.conn.CloseNow())
			} else {
				_ = c.conn.Close(websocket.StatusNormalClosure, "")
			}
		}
		s.idle(d)
	}
	type state struct{ server, models, goroutines int }
	now := func() state {
		return state{descriptors(t, s.cmd.Process.Pid), descriptors(t, s.liveProcess()), int(s.metric("go_goroutines"))}
	}
	open(100)
	early := now()
	open(900)
	late := now()
	assert.LessOrEqual(t, late.server, early.server+8)
	assert.LessOrEqual(t, late.models, early.models+8)
	assert.LessOrEqual(t, late.goroutines, early.goroutines+16)
	assert.Equal(t, 750, count(t, d, "SELECT COUNT(*) FROM ledger WHERE type = 'deduction'"), "those with sound")
	assert.Equal(t, 750*33, count(t, d, "SELECT -SUM(amount) FROM ledger WHERE type = 'deduction'"), "a minute each, in ten-thousandths")
	t.Logf("1,000 sessions: open files of the server %d and %d, of the models' process %d and %d, goroutines %d and %d", early.server, late.server, early.models, late.models, early.goroutines, late.goroutines)
}

// TestLiveHourOfSilence: an hour without speech, as fast as the service takes
// it, has no text and is charged to the minute, at the price of a recording.
func TestLiveHourOfSilence(t *testing.T) {
	s := serve(t, t.TempDir(), "--demo").unlimited()
	c := s.phone(strings.Replace(pushToTalk, "null", `{"type":"server_vad"}`, 1) + "}")
	minute := make([]byte, 60*32000)
	for range 60 {
		c.speak(minute)
	}
	c.send(`{"type":"input_audio_buffer.commit"}`)
	assert.Empty(t, c.until(completed).Transcript)
	require.NoError(t, c.conn.CloseNow())
	d := s.store()
	s.idle(d)
	assert.Equal(t, 2000, count(t, d, "SELECT -SUM(amount) FROM ledger WHERE type = 'deduction'"), "60 minutes of the optimized tier, in ten-thousandths")
}

// idle waits until no live session and no task is left.
func (s *server) idle(d *db.DB) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); s.metric("otograph_live_sessions") > 0 || count(s.t, d, "SELECT COUNT(*) FROM tasks") > 0; time.Sleep(time.Second) {
		require.True(s.t, time.Now().Before(deadline), "sessions or tasks are left")
	}
}

// metric returns the sum of a metric's values.
func (s *server) metric(name string) (sum float64) {
	s.t.Helper()
	for line := range strings.Lines(string(s.do("GET", "//metrics", nil).body)) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			require.NoError(s.t, err)
			sum += value
		}
	}
	return sum
}
