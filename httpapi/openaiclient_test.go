package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"math"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOpenAIGoClient uses the official Go client, unchanged.
func TestOpenAIGoClient(t *testing.T) {
	w := newWorld(t)
	w.work()
	ctx := context.Background()
	client := openai.NewClient(option.WithAPIKey(w.key), option.WithBaseURL(w.url+"/v1/"), option.WithMaxRetries(0))
	file := func(name string) io.Reader { return openai.File(bytes.NewReader(wav(2)), name, "audio/wav") }
	const text = "Hello there. Good <b>day</b> & bye."

	page, err := client.Models.List(ctx)
	require.NoError(t, err)
	require.Len(t, page.Data, len(openAIModels))
	model, err := client.Models.Get(ctx, page.Data[0].ID)
	require.NoError(t, err)
	assert.Equal(t, page.Data[0].ID, model.ID)

	plain, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: openai.AudioModelWhisper1})
	require.NoError(t, err)
	assert.Equal(t, text, plain.Text)
	assert.Equal(t, "duration", plain.Usage.Type)

	verbose, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
		File: file("a.wav"), Model: openai.AudioModelWhisper1, ResponseFormat: openai.AudioResponseFormatVerboseJSON,
		TimestampGranularities: []string{"word", "segment"}, Language: openai.String("en"), Temperature: openai.Float(0.1), Prompt: openai.String("Talk."),
	})
	require.NoError(t, err)
	whole := verbose.AsTranscriptionVerbose()
	assert.Len(t, whole.Words, 3)
	assert.Len(t, whole.Segments, 2)
	first := whole.Segments[0]
	assert.Equal(t, []any{0.5, -0.25, 0.2, 0.05, int64(25), []int64{7, 8}}, []any{first.CompressionRatio, first.AvgLogprob, first.Temperature, first.NoSpeechProb, first.Seek, first.Tokens})

	english, err := client.Audio.Translations.New(ctx, openai.AudioTranslationNewParams{File: file("a.wav"), Model: openai.AudioModelWhisper1, Prompt: openai.String("Talk.")})
	require.NoError(t, err)
	assert.Equal(t, "Hello there. In English.", english.Text)

	sure, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
		File: file("a.wav"), Model: openai.AudioModelGPT4oTranscribe, Include: []openai.TranscriptionInclude{openai.TranscriptionIncludeLogprobs},
	})
	require.NoError(t, err)
	require.Len(t, sure.Logprobs, 3)
	assert.InDelta(t, math.Log(0.9), sure.Logprobs[0].Logprob, 1e-6)

	stream := client.Audio.Transcriptions.NewStreaming(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: openai.AudioModelGPT4oMiniTranscribe})
	said, done := "", ""
	for stream.Next() {
		switch event := stream.Current().AsAny().(type) {
		case openai.TranscriptionTextDeltaEvent:
			said += event.Delta
		case openai.TranscriptionTextDoneEvent:
			done = event.Text
		}
	}
	require.NoError(t, stream.Err())
	assert.Equal(t, []string{text, text}, []string{said, done})

	known, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
		File: file("a.wav"), Model: openai.AudioModelGPT4oTranscribeDiarize, ResponseFormat: openai.AudioResponseFormatDiarizedJSON,
		KnownSpeakerNames: []string{"Ann"}, KnownSpeakerReferences: []string{"data:audio/wav;base64," + base64.StdEncoding.EncodeToString(wav(2))},
	})
	require.NoError(t, err)
	assert.Contains(t, known.RawJSON(), `"speaker":"Ann"`)

	var failure *openai.Error
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: "whisper-9"})
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{404, "model_not_found", "model", "invalid_request_error"}, []any{failure.StatusCode, failure.Code, failure.Param, failure.Type})
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("broken.wav"), Model: openai.AudioModelWhisper1})
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 422, failure.StatusCode)
	_, broke := w.newAccount("broke", "0")
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: openai.AudioModelWhisper1}, option.WithAPIKey(broke))
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{402, "insufficient_quota"}, []any{failure.StatusCode, failure.Type})
	_, err = client.Models.List(ctx, option.WithAPIKey("sk-none"))
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, "authentication_error", failure.Type)
	broken := client.Audio.Transcriptions.NewStreaming(ctx, openai.AudioTranscriptionNewParams{File: file("broken.wav"), Model: openai.AudioModelWhisper1})
	for broken.Next() {
	}
	assert.ErrorContains(t, broken.Err(), "longer than 5 hours")
}
