// Command openairealtime transcribes recordings (raw samples, 24 kHz, mono,
// 16 bits) live with OpenAI's Go client against a service. It prints a line for
// each: a JSON string with the transcript.
//
//	go run -C tools ./openairealtime URL KEY RECORDING.s16le...
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"
)

// piece is 50 ms of samples.
const piece = 24000 * 2 / 20

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: openairealtime URL KEY RECORDING.s16le...")
		os.Exit(2)
	}
	client := openai.NewClient(option.WithAPIKey(os.Args[2]), option.WithBaseURL(os.Args[1]+"/v1/"), option.WithMaxRetries(0))
	for _, name := range os.Args[3:] {
		sound, err := os.ReadFile(name)
		text := ""
		if err == nil {
			text, err = transcribe(&client, sound)
		}
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(text)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "openairealtime: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// transcribe returns the transcript of one committed buffer. The joined deltas
// must be equal to it.
func transcribe(client *openai.Client, sound []byte) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := client.Realtime.Connect(ctx, realtime.RealtimeConnectionOptions{}, option.WithQuery("intent", "transcription"))
	if err != nil {
		return "", err
	}
	defer conn.Abort()
	deltas := ""
	for {
		event, err := conn.Recv(ctx)
		if err != nil {
			return "", err
		}
		switch e := event.AsAny().(type) {
		case realtime.SessionCreatedEvent:
			err = configure(ctx, conn)
		case realtime.SessionUpdatedEvent:
			err = send(ctx, conn, sound)
		case realtime.ConversationItemInputAudioTranscriptionDeltaEvent:
			deltas += e.Delta
		case realtime.ConversationItemInputAudioTranscriptionCompletedEvent:
			if deltas != e.Transcript {
				return "", fmt.Errorf("the deltas are %q, the transcript %q", deltas, e.Transcript)
			}
			return e.Transcript, nil
		case realtime.RealtimeErrorEvent:
			return "", fmt.Errorf("an error event: %s", e.RawJSON())
		}
		if err != nil {
			return "", err
		}
	}
}

// configure asks for turns that the client ends.
func configure(ctx context.Context, conn *realtime.RealtimeConnection) error {
	return conn.SendRaw(ctx, json.RawMessage(`{"type": "session.update", "session": {"type": "transcription", "audio": {"input": {
		"format": {"type": "audio/pcm", "rate": 24000},
		"transcription": {"model": "gpt-4o-transcribe", "language": "en"}, "turn_detection": null}}}}`))
}

// send appends the sound in pieces and commits it.
func send(ctx context.Context, conn *realtime.RealtimeConnection, sound []byte) error {
	for at := 0; at < len(sound); at += piece {
		part := base64.StdEncoding.EncodeToString(sound[at:min(at+piece, len(sound))])
		event := realtime.InputAudioBufferAppendEventParam{Audio: part}
		if err := conn.Send(ctx, realtime.RealtimeClientEventUnionParam{OfInputAudioBufferAppend: &event}); err != nil {
			return err
		}
	}
	return conn.Send(ctx, realtime.RealtimeClientEventUnionParam{OfInputAudioBufferCommit: &realtime.InputAudioBufferCommitEventParam{}})
}
