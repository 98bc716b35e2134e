//go:build real

package test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRealLiveSessions speaks to a service in 20 live sessions at a time
// ($OTOGRAPH_LIVE_SESSIONS), each a minute of recordings of people at their own
// speed, with Moonshine tiny, and reports how long after speech_stopped a text
// arrives. Every item gets its text, and there is no error.
func TestRealLiveSessions(t *testing.T) {
	folder := filepath.Dir(filepath.Dir(pulled(t, "moonshine-tiny-en", "*encoder*")))
	sessions := 20
	if n, err := strconv.Atoi(os.Getenv("OTOGRAPH_LIVE_SESSIONS")); err == nil {
		sessions = n
	}
	s := serve(t, t.TempDir(), "--models", folder, "--live-sessions", strconv.Itoa(sessions)).unlimited()
	var recordings [][]byte
	for _, name := range []string{"libri_2412_en.flac", "libri_6930_en.flac", "libri_7902_en.flac", "librispeech_en.flac", "austen_0870_en.flac", "ljspeech_en.flac"} {
		recordings = append(recordings, append(raw(t, filepath.Join(realRecordings, name)), make([]byte, 32000)...))
	}
	var (
		mu    sync.Mutex
		late  []time.Duration
		group sync.WaitGroup
	)
	for i := range sessions {
		c := s.phone(`{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"transcription":{"model":"otograph-optimized","language":"en"},"turn_detection":{"type":"server_vad"}}}}`)
		begin := time.Now().Add(time.Duration(i) * 100 * time.Millisecond)
		group.Go(func() {
			times, err := c.minute(slices.Concat(recordings[i%len(recordings):], recordings[:i%len(recordings)]), begin)
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			late = append(late, times...)
		})
	}
	group.Wait()
	require.NotEmpty(t, late)
	slices.Sort(late)
	at := func(p float64) time.Duration { return late[int(p*float64(len(late)-1))].Round(time.Millisecond) }
	t.Logf("%d sessions, %d texts: median %v, P95 %v, P99 %v after speech_stopped", sessions, len(late), at(0.5), at(0.95), at(0.99))
}

// minute sends a minute of sound at its own speed and returns for each item the
// time from speech_stopped to its text.
func (c *caller) minute(recordings [][]byte, begin time.Time) (late []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()
	const piece = 3200 // bytes: 0.1 s
	sound := slices.Concat(recordings...)
	sound = append(sound[:min(len(sound), 60*32000)], make([]byte, 2*32000)...)
	var sending error
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; n < len(sound) && sending == nil; n += piece {
			time.Sleep(time.Until(begin.Add(time.Duration(n/32) * time.Millisecond)))
			part := base64.StdEncoding.EncodeToString(sound[n:min(n+piece, len(sound))])
			sending = c.conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"input_audio_buffer.append","audio":%q}`, part))
		}
		if sending == nil {
			sending = c.conn.Write(ctx, websocket.MessageText, []byte(`{"type":"input_audio_buffer.commit"}`))
		}
	})
	defer group.Wait()
	stopped, open := map[string]time.Time{}, map[string]bool{}
	for last := false; !last || len(open) > 0; {
		_, data, err := c.conn.Read(ctx)
		if err != nil {
			return late, err
		}
		var e liveEvent
		if err := json.Unmarshal(data, &e); err != nil {
			return late, err
		}
		switch e.Type {
		case "error":
			return late, fmt.Errorf("%+v", e.Error)
		case "input_audio_buffer.speech_stopped":
			stopped[e.Item] = time.Now()
		case "input_audio_buffer.committed":
			open[e.Item] = true
		case completed:
			if at, ok := stopped[e.Item]; ok {
				late = append(late, time.Since(at))
			}
			delete(open, e.Item)
			last = last || e.Transcript == "" // the last commit is of the silence
		}
	}
	return late, sending
}
