package main

import (
	_ "embed"
	"encoding/base64"
	"net/http"
)

// recording is 4.4 s of the demo models' synthetic voice
// (testdata/conversation.flac from 11.5 s).
//
//go:embed recording.mp3
var recording []byte

// testCase is a request, with a function that judges the response.
type testCase struct {
	name     string
	path     string // transcriptions and translations get a form with the recording, other paths a GET
	fields   [][2]string
	field    string // the field named in a refusal, "" for any
	invalid  bool   // the field's value is wrong, and must be refused
	stranger bool   // the key is wrong
	judge    func(answer) (Verdict, string)
}

const (
	transcriptions = "/audio/transcriptions"
	translations   = "/audio/translations"
)

// cases returns every case: formats, parameters, wrong values, translations,
// models.
func cases() []testCase {
	var list []testCase
	for _, format := range []string{"json", "text", "srt", "vtt", "verbose_json", "diarized_json"} {
		list = append(list, testCase{
			name: "response_format=" + format, path: transcriptions, fields: formatted(format), field: "response_format", judge: inFormat(format),
		})
	}
	list = append(list, parameters()...)
	list = append(list, wrongValues()...)
	for _, format := range []string{"json", "text", "srt", "vtt", "verbose_json"} {
		list = append(list, testCase{name: "translation: response_format=" + format, path: translations, fields: formatted(format), judge: inFormat(format)})
	}
	get := func(name, path string, judge func(answer) (Verdict, string)) testCase {
		return testCase{name: name, path: path, judge: judge}
	}
	unknown := get("models: one that does not exist", "/models/no-such-model", nil)
	unknown.invalid = true
	stranger := get("a wrong key", "/models", nil)
	stranger.invalid, stranger.stranger = true, true
	return append(list, get("models: list", "/models", inJSON("models")), get("models: retrieve", "/models/{model}", inJSON("model")), unknown, stranger)
}

func formatted(format string, more ...[2]string) [][2]string {
	return append([][2]string{{"response_format", format}}, more...)
}

// parameters returns the cases of valid values.
func parameters() []testCase {
	verbose, diarized := inFormat("verbose_json"), inFormat("diarized_json")
	plain := inFormat("json")
	one := func(name, field string, judge func(answer) (Verdict, string), fields ...[2]string) testCase {
		return testCase{name: name, path: transcriptions, fields: fields, field: field, judge: judge}
	}
	reference := "data:audio/mpeg;base64," + base64.StdEncoding.EncodeToString(recording)
	return []testCase{
		one("language", "language", shows(verbose, "language", spoken), formatted("verbose_json", [2]string{"language", "en"})...),
		one("languages[]", "languages", plain, [2]string{"languages[]", "en"}, [2]string{"languages[]", "de"}),
		one("keywords[]", "keywords", plain, [2]string{"keywords[]", "budget"}, [2]string{"keywords[]", "Otograph"}),
		one("prompt", "prompt", plain, [2]string{"prompt", "A talk."}),
		one("temperature", "temperature", plain, [2]string{"temperature", "0.2"}),
		one("timestamp_granularities[]=word", "timestamp_granularities", shows(verbose, "words", entries), formatted("verbose_json", [2]string{"timestamp_granularities[]", "word"})...),
		one("timestamp_granularities[]=segment", "timestamp_granularities", shows(verbose, "segments", entries), formatted("verbose_json", [2]string{"timestamp_granularities[]", "segment"})...),
		one("include[]=logprobs", "include", shows(plain, "logprobs", entries), [2]string{"include[]", "logprobs"}),
		one("chunking_strategy=auto", "chunking_strategy", plain, [2]string{"chunking_strategy", "auto"}),
		one("chunking_strategy, members", "chunking_strategy", plain, [2]string{"chunking_strategy[type]", "server_vad"}, [2]string{"chunking_strategy[threshold]", "0.4"}),
		one("chunking_strategy, JSON", "chunking_strategy", plain, [2]string{"chunking_strategy", `{"type":"server_vad","silence_duration_ms":200,"prefix_padding_ms":50}`}),
		one("known speakers", "known_speaker", shows(diarized, "segments", namesSpeaker), formatted("diarized_json", [2]string{"known_speaker_names[]", speaker}, [2]string{"known_speaker_references[]", reference})...),
		one("stream", "stream", inEvents(""), [2]string{"model", "gpt-4o-mini-transcribe"}, [2]string{"stream", "true"}),
		one("stream, diarized_json", "stream", inEvents("transcript.text.segment"), formatted("diarized_json", [2]string{"model", "gpt-4o-transcribe-diarize"}, [2]string{"stream", "true"})...),
		one("model=gpt-transcribe", "model", plain, [2]string{"model", "gpt-transcribe"}),
		one("model=gpt-4o-mini-transcribe-2025-12-15", "model", plain, [2]string{"model", "gpt-4o-mini-transcribe-2025-12-15"}),
	}
}

// wrongValues returns the cases of values that must be refused.
func wrongValues() (list []testCase) {
	for _, f := range [][2]string{
		{"model", "no-such-model"},
		{"response_format", "xml"},
		{"language", "klingon"},
		{"languages[]", "klingon"},
		{"keywords[]", "<b>"},
		{"temperature", "9"},
		{"include[]", "everything"},
		{"chunking_strategy", "nonsense"},
		{"known_speaker_names[]", speaker},
		{"stream", "maybe"},
	} {
		list = append(list, testCase{name: "wrong " + f[0], path: transcriptions, fields: [][2]string{f}, field: f[0], invalid: true})
	}
	return append(list, testCase{
		name: "wrong timestamp_granularities[]", path: transcriptions, field: "timestamp_granularities[]", invalid: true,
		fields: formatted("verbose_json", [2]string{"timestamp_granularities[]", "letter"}),
	}, testCase{name: "translation: wrong response_format", path: translations, field: "response_format", invalid: true, fields: formatted("xml")})
}

// usable is the status of a usable answer.
const usable = http.StatusOK
