package wyoming

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/doors"
	"github.com/otograph/otograph/internal/test/doortest"
	"github.com/otograph/otograph/spec"
)

// read reads events as a client does.
func read(t testing.TB, list [][]byte) (out []doortest.Message) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(bytes.Join(list, nil)))
	for {
		if _, err := in.Peek(1); err != nil {
			return out
		}
		_, data, err := readEvent(in)
		require.NoError(t, err)
		out = append(out, doortest.Read(t, [][]byte{data})...)
	}
}

func send(t testing.TB, d *Door, text string) ([]doors.Action, []doortest.Message) {
	t.Helper()
	actions, replies, err := d.Receive(true, []byte(text))
	require.NoError(t, err)
	return actions, read(t, replies)
}

// TestReceive checks each event of a client.
func TestReceive(t *testing.T) {
	d, _ := NewDoor([]string{"de", "en"})
	assert.Empty(t, d.Begin())
	_, replies := send(t, d, `{"type":"describe"}`)
	program := replies[0]["data"].(map[string]any)["asr"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"info", "otograph", true, true, true}, []any{replies[0]["type"], program["name"], program["installed"], program["supports_transcript_streaming"], program["requires_external_vad"]})
	model := program["models"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"de", "en"}, model["languages"])
	assert.Contains(t, model["attribution"], "url")
	_, replies = send(t, d, `{"type":"ping","data":{"text":"a"}}`)
	assert.Equal(t, []doortest.Message{{"type": "pong", "data": map[string]any{"text": "a"}}}, replies)
	_, _, err := d.Receive(false, []byte{1, 2})
	assert.ErrorContains(t, err, "audio-chunk: expected audio-start")
	send(t, d, `{"type":"transcribe","data":{"language":"de","name":"ggml-small","vad_sensitivity":"relaxed","transcript_names":["Ann"],"transcript_terms":["lamp"]}}`)
	_, _, err = d.Receive(true, []byte(`{"type":"audio-start","data":{"rate":16000,"width":4,"channels":1}}`))
	require.Error(t, err)
	_, _, err = d.Receive(false, []byte{1, 2})
	require.ErrorContains(t, err, "expected audio-start", "a refused format begins no session")
	actions, _ := send(t, d, `{"type":"audio-start","data":{"rate":22050,"width":2,"channels":1,"timestamp":0}}`)
	set := actions[0].(doors.Configure).Settings
	assert.Equal(t, doors.Format{Encoding: "s16le", Rate: 22050, Channels: 1}, set.Format)
	assert.Equal(t, []any{"de", "ggml-small", 1.25, false}, []any{*set.Options.ASRLanguage, set.Extras.Model, set.Silence, set.Revisable})
	assert.Equal(t, []string{"Ann", "lamp"}, set.Options.Hotwords)
	actions, _ = send(t, d, `{"type":"transcribe","data":{"language":"en","vad_sensitivity":"relaxed"}}`) // after audio-start
	assert.Equal(t, "en", *actions[0].(doors.Configure).Options.ASRLanguage)
	actions, _, _ = d.Receive(false, []byte{1, 2})
	assert.Equal(t, []doors.Action{doors.Audio{1, 2}}, actions)
	actions, _ = send(t, d, `{"type":"audio-stop"}`)
	assert.Equal(t, []doors.Action{doors.Finish{}}, actions)
	send(t, d, `{"type":"voice-started"}`)
	for text, want := range map[string]string{`{"type":"audio-start","data":{"rate":16000,"width":3,"channels":1}}`: "audio-start: expected width 2", `{"type":1}`: "event: "} {
		_, _, err := d.Receive(true, []byte(text))
		assert.ErrorContains(t, err, want)
	}
	d.Send(spec.LiveEvent{Kind: spec.LiveFinal, Text: "An."})
	actions, _, _ = d.Receive(false, []byte{1, 2})
	assert.Equal(t, []doors.Action{doors.Finish{}}, actions, "with a sensitivity, the end of speech ends the command")
}

func TestMessagesAtTheEnd(t *testing.T) {
	d, _ := NewDoor(nil)
	list, _, _ := d.End(doors.End{})
	assert.Equal(t, []doortest.Message{{"type": "transcript", "data": map[string]any{"text": ""}}}, read(t, list), "also without speech")
	d.Send(spec.LiveEvent{Kind: spec.LiveFinal, Text: "Good."})
	list, _, _ = d.End(doors.End{Result: &spec.Result{Language: "en"}})
	assert.Equal(t, []doortest.Message{{"type": "transcript", "data": map[string]any{"text": "Good.", "language": "en"}}, {"type": "transcript-stop", "data": map[string]any{}}}, read(t, list))
	list, _, _ = d.End(doors.End{Reason: doors.Gone}) // also after an invalid event
	assert.Contains(t, read(t, list)[0]["data"].(map[string]any)["text"], "the event cannot be read")
	list, _, _ = d.End(doors.End{Reason: doors.Unpaid, Text: "why"})
	assert.Equal(t, []doortest.Message{{"type": "error", "data": map[string]any{"text": "why"}}}, read(t, list))
}

// TestChunksBeginTheTranscript checks that the chunks joined begin the
// transcript.
func TestChunksBeginTheTranscript(t *testing.T) {
	for seed := range uint64(200) {
		d, _ := NewDoor(nil)
		joined, starts := "", 0
		for _, e := range doortest.Events(rand.New(rand.NewPCG(seed, 4)), 6, true) {
			for _, m := range read(t, d.Send(e)) {
				if m["type"] == "transcript-start" {
					require.Empty(t, joined)
					starts++
					continue
				}
				joined += m["data"].(map[string]any)["text"].(string)
			}
		}
		list, _, _ := d.End(doors.End{})
		text := read(t, list)[0]["data"].(map[string]any)["text"]
		require.Equal(t, text, joined)
		require.Equal(t, joined != "", starts == 1)
	}
}

// TestConn checks events as the official client writes them.
func TestConn(t *testing.T) {
	ours, theirs := net.Pipe()
	c := NewConn(ours)
	go func() {
		_, _ = theirs.Write([]byte(`{"type": "transcribe", "version": "1.10.2", "data_length": 18}` + "\n" + `{"language": "de"}` +
			`{"type": "audio-chunk", "data": {"rate": 16000}, "data_length": 2, "payload_length": 4}` + "\n{}\x01\x02\x03\x04" + `{"type": "describe"}` + "\n"))
		_ = theirs.Close()
	}()
	for _, want := range []struct {
		text bool
		data string
	}{{true, `{"data":{"language":"de"},"type":"transcribe"}`}, {false, "\x01\x02\x03\x04"}, {true, `{"data":null,"type":"describe"}`}} {
		text, data, err := c.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want.text, text)
		assert.Equal(t, want.data, string(data))
	}
	_, _, err := c.Read(t.Context())
	assert.Error(t, err)
	require.NoError(t, c.Ping(t.Context()))
	require.NoError(t, c.Close(0, ""))
}

// TestCloseWhileClientSends checks that a client which still sends can read the
// last event: its connection is not reset.
func TestCloseWhileClientSends(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	closed := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			c := NewConn(conn)
			_ = c.Write(context.Background(), event("error", doors.Object{"text": "why"})[0])
			err = c.Close(0, "")
		}
		closed <- err
	}()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	for range 50 {
		_, err := client.Write(make([]byte, 4096))
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	_, data, err := readEvent(bufio.NewReader(client))
	require.NoError(t, err)
	assert.Contains(t, string(data), "why")
	require.NoError(t, client.Close())
	require.NoError(t, <-closed)
}

func FuzzEvent(f *testing.F) {
	for _, text := range []string{
		`{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}`, `{"type":"audio-chunk","payload_length":2}` + "\nab", `{"type":"a","data_length":999999999}`, `{"type":"a","data_length":-1}`,
		`{"type":"x","data_length":2}` + "\n[]", strings.Repeat("x", 70<<10),
	} {
		f.Add([]byte(text + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(data), maxLine)
		d, _ := NewDoor(nil)
		for {
			text, message, err := readEvent(in)
			if err != nil {
				return
			}
			assert.True(t, !text || json.Valid(message))
			_, _, _ = d.Receive(text, message)
		}
	})
}
