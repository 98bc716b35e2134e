// Command openaiclient calls a service's OpenAI-compatible endpoints with the
// official Go client and checks the responses. The tests of httpserver start it
// against a service with their test engine.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared/constant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failures collects failed assertions.
type failures struct{ found []string }

// Errorf records a failed assertion.
func (f *failures) Errorf(format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

// FailNow ends the check.
func (f *failures) FailNow() { runtime.Goexit() }

func main() {
	url := flag.String("url", "", "address of the service")
	key := flag.String("key", "", "API key of an account with money")
	broke := flag.String("broke", "", "API key of an account without money")
	flag.Parse()
	var t failures
	calls := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		calls = check(&t, *url, *key, *broke)
	}()
	<-done
	if len(t.found) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(t.found, "\n"))
		os.Exit(1)
	}
	fmt.Printf("%d calls of the official Go client\n", calls)
}

// wav is a WAV file of two seconds of silence at 8 kHz, 8 bits.
func wav() []byte {
	const samples = 16000
	b := make([]byte, 44, 44+samples)
	copy(b, "RIFF\xa4\x3e\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x80\x3e\x00\x00")
	return append(b, bytes.Repeat([]byte{0x80}, samples)...)
}

// check requests transcripts, translations and models, and sends requests that
// must be refused.
func check(t *failures, url, key, broke string) (calls int) {
	ctx := context.Background()
	client := openai.NewClient(option.WithAPIKey(key), option.WithBaseURL(url+"/v1/"), option.WithMaxRetries(0),
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			calls++
			return next(r)
		}))
	file := func(name string) io.Reader { return openai.File(bytes.NewReader(wav()), name, "audio/wav") }
	const text = "Hello there. Good <b>day</b> & bye."

	page, err := client.Models.List(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, page.Data)
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
	require.NoError(t, stream.Close()) // [DONE] is not the end of the body
	assert.Equal(t, []string{text, text}, []string{said, done})

	known, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
		File: file("a.wav"), Model: openai.AudioModelGPT4oTranscribeDiarize, ResponseFormat: openai.AudioResponseFormatDiarizedJSON,
		KnownSpeakerNames: []string{"Ann"}, KnownSpeakerReferences: []string{"data:audio/wav;base64," + base64.StdEncoding.EncodeToString(wav())},
	})
	require.NoError(t, err)
	assert.Contains(t, known.RawJSON(), `"speaker":"Ann"`)

	var failure *openai.Error
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: "whisper-9"})
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{404, "model_not_found", "model", "invalid_request_error"}, []any{failure.StatusCode, failure.Code, failure.Param, failure.Type})
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("broken.wav"), Model: openai.AudioModelWhisper1})
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{400, "invalid_value", "file"}, []any{failure.StatusCode, failure.Code, failure.Param})
	_, err = client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: file("a.wav"), Model: openai.AudioModelWhisper1}, option.WithAPIKey(broke))
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{402, "insufficient_quota", "insufficient_quota"}, []any{failure.StatusCode, failure.Type, failure.Code})
	_, err = client.Models.List(ctx, option.WithAPIKey("sk-none"))
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, []any{"authentication_error", "invalid_api_key"}, []any{failure.Type, failure.Code})
	broken := client.Audio.Transcriptions.NewStreaming(ctx, openai.AudioTranscriptionNewParams{File: file("broken.wav"), Model: openai.AudioModelWhisper1})
	for broken.Next() {
	}
	assert.ErrorContains(t, broken.Err(), "longer than 5 hours")
	assert.NoError(t, broken.Close())
	openAIGoFormats(t, client, file)
	openAIGoRefusals(t, client, file)
	assert.GreaterOrEqual(t, calls, 25)
	return calls
}

// openAIGoFormats checks the formats and parameters of transcriptions.
func openAIGoFormats(t *failures, client openai.Client, file func(string) io.Reader) {
	ask := func(p openai.AudioTranscriptionNewParams, o ...option.RequestOption) *openai.AudioTranscriptionNewResponseUnion {
		p.File = file("a.wav")
		if p.Model == "" {
			p.Model = openai.AudioModelWhisper1
		}
		answer, err := client.Audio.Transcriptions.New(context.Background(), p, o...)
		require.NoError(t, err)
		return answer
	}
	for format, begin := range map[openai.AudioResponseFormat]string{
		openai.AudioResponseFormatText: "Hello there.", openai.AudioResponseFormatSRT: "1\n00:00:", openai.AudioResponseFormatVTT: "WEBVTT\n",
	} {
		var text []byte
		ask(openai.AudioTranscriptionNewParams{ResponseFormat: format}, option.WithResponseBodyInto(&text))
		assert.True(t, strings.HasPrefix(string(text), begin), "%s: %q", format, text)
	}
	verbose := openai.AudioTranscriptionNewParams{ResponseFormat: openai.AudioResponseFormatVerboseJSON}
	verbose.TimestampGranularities = []string{"word"}
	words := ask(verbose).AsTranscriptionVerbose()
	assert.Equal(t, []int{3, 0}, []int{len(words.Words), len(words.Segments)})
	verbose.TimestampGranularities = []string{"segment"}
	segments := ask(verbose).AsTranscriptionVerbose()
	assert.Equal(t, []int{0, 2}, []int{len(segments.Words), len(segments.Segments)})

	assert.NotEmpty(t, ask(openai.AudioTranscriptionNewParams{Model: "otograph-standard"}).Text)
	heard := ask(openai.AudioTranscriptionNewParams{Model: openai.AudioModelGPTTranscribe, Keywords: []string{"Otograph", "Doe, John"}, Languages: []string{"en", "de"}})
	require.Len(t, heard.Languages, 1)
	assert.Equal(t, "en", heard.Languages[0].Code)
	assert.NotEmpty(t, ask(openai.AudioTranscriptionNewParams{Model: openai.AudioModelGPT4oMiniTranscribe2025_12_15}).Text)
	chunked := openai.AudioTranscriptionNewParams{}
	chunked.ChunkingStrategy.OfAudioTranscriptionNewsChunkingStrategyVadConfig = &openai.AudioTranscriptionNewParamsChunkingStrategyVadConfig{
		Type: "server_vad", Threshold: openai.Float(0.4), SilenceDurationMs: openai.Int(200),
	}
	assert.NotEmpty(t, ask(chunked).Text)
	diarize := openai.AudioTranscriptionNewParams{
		File: file("a.wav"), Model: openai.AudioModelGPT4oTranscribeDiarize, ResponseFormat: openai.AudioResponseFormatDiarizedJSON,
	}
	diarize.ChunkingStrategy.OfAuto = constant.Auto("auto")
	stream := client.Audio.Transcriptions.NewStreaming(context.Background(), diarize)
	told := 0
	for stream.Next() {
		if _, ok := stream.Current().AsAny().(openai.TranscriptionTextSegmentEvent); ok {
			told++
		}
	}
	require.NoError(t, stream.Err())
	require.NoError(t, stream.Close())
	assert.Equal(t, 2, told)
}

// openAIGoRefusals sends requests that must be refused and checks the client's
// own errors.
func openAIGoRefusals(t *failures, client openai.Client, file func(string) io.Reader) {
	refused := func(err error) []any {
		var failure *openai.Error
		require.ErrorAs(t, err, &failure)
		return []any{failure.StatusCode, failure.Type, failure.Param}
	}
	for param, p := range map[string]openai.AudioTranscriptionNewParams{
		"response_format": {ResponseFormat: "xml"}, "language": {Language: openai.String("klingon")}, "temperature": {Temperature: openai.Float(3)},
		"known_speaker_names[]": {KnownSpeakerNames: []string{"Ann"}}, "timestamp_granularities[]": {TimestampGranularities: []string{"letter"}},
		"keywords[]": {Keywords: []string{"<b>"}}, "languages[]": {Languages: []string{"klingon"}}, "include[]": {Include: []openai.TranscriptionInclude{"everything"}},
	} {
		p.File, p.Model = file("a.wav"), openai.AudioModelWhisper1
		_, err := client.Audio.Transcriptions.New(context.Background(), p)
		assert.Equal(t, []any{400, "invalid_request_error", param}, refused(err))
	}
	_, err := client.Audio.Transcriptions.New(context.Background(), openai.AudioTranscriptionNewParams{
		File: openai.File(bytes.NewReader(nil), "a.wav", "audio/wav"), Model: openai.AudioModelWhisper1,
	})
	assert.Equal(t, []any{400, "invalid_request_error", "file"}, refused(err))
	_, err = client.Models.Get(context.Background(), "whisper-9")
	assert.Equal(t, []any{404, "invalid_request_error", "model"}, refused(err))
	speech, err := client.Audio.Speech.New(context.Background(), openai.AudioSpeechNewParams{Input: "x", Model: "x"})
	if speech != nil {
		defer speech.Body.Close()
	}
	assert.Equal(t, []any{404, "invalid_request_error", ""}, refused(err))
	assert.Equal(t, []any{404, "invalid_request_error", ""}, refused(client.Post(context.Background(), "realtime/client_secrets", map[string]any{}, nil)))
}
