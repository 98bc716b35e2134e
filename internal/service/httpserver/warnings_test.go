package httpserver

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTruncatedRecordingsAreReported: the task, its result, its callback, the
// ledger and the responses in OpenAI's dialect report a truncated recording; a
// complete recording has no such field or header.
func TestTruncatedRecordingsAreReported(t *testing.T) {
	w := newWorld(t)
	w.work()
	said := []any{map[string]any{"option": "audio", "reason": "“cut”"}}
	const header = `299 - "\u201ccut\u201d"`
	for name, cut := range map[string]bool{"cut.wav": true, "talk.wav": false} {
		m := upload(nil)
		m["audio_filename"], m["callback_url"] = name, w.media.url+"/callback"
		id := w.create(m)
		w.final(id)
		for _, path := range []string{"", "/result"} {
			got, present := w.do("GET", "/tasks/"+id+path, nil).object(t)["warnings"]
			assert.Equal(t, cut, present, path)
			if cut {
				assert.Equal(t, said, got, path)
			}
		}
		vtt := w.do("GET", "/tasks/"+id+"/transcript?format=vtt", nil)
		require.Equal(t, 200, vtt.status)
		require.Eventually(t, func() bool { return len(w.media.callbacks(id)) == 1 }, 10*time.Second, 25*time.Millisecond)
		callback := w.media.callbacks(id)[0]
		var body map[string]any
		require.NoError(t, json.Unmarshal(callback.body, &body))
		assert.Len(t, body, 5, "the specification's fields")
		body5, head := form(t, name, false, "model", "whisper-1")
		openai := w.do("POST", "/audio/transcriptions", body5, head)
		require.Equal(t, 200, openai.status, "%s", openai.body)
		streamed, head := form(t, name, false, "model", "gpt-4o-transcribe", "stream", "true")
		events := w.do("POST", "/audio/transcriptions", streamed, head)
		require.Equal(t, 200, events.status)
		description := w.do("GET", "/billing/transactions?page_size=1", nil).object(t)["transactions"].([]any)[0].(map[string]any)["description"]
		if !cut {
			assert.Empty(t, callback.header.Get("Warning")+openai.header.Get("Warning"))
			assert.NotContains(t, string(events.body)+string(vtt.body), "warning")
			assert.NotContains(t, description, "cut")
			continue
		}
		assert.Equal(t, []string{header, header}, []string{callback.header.Get("Warning"), openai.header.Get("Warning")})
		assert.Contains(t, string(events.body), `"warnings":[{"option":"audio","reason":"“cut”"}]`)
		assert.Contains(t, string(vtt.body), "“cut”\n\n00")
		assert.Contains(t, description, "decoded part of a cut or damaged recording")
	}
}
