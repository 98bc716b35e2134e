package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

func TestWholeText(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{nil, ""}, {[]string{"a", "", "b"}, "a b"}, {[]string{"你好。", "再见。"}, "你好。再见。"}, {[]string{"你好", "Bob"}, "你好 Bob"}, {[]string{"안녕", "하세요"}, "안녕 하세요"},
	} {
		var result spec.Result
		for _, text := range tt.in {
			result.Segments = append(result.Segments, spec.Segment{Text: text})
		}
		assert.Equal(t, tt.want, wholeText(result))
	}
}

// FuzzForm: any form is either read or refused.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=\"temperature\"\r\n\r\n0.5\r\n--x--\r\n", "--x--",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := ReadForm(multipart.NewReader(bytes.NewReader(body), "x"), Names{Sets: []spec.Available{{Standard: true}}}, len(body)%2 == 0, func(_ string, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		}, func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err != nil {
			if errors.As(err, new(*jsonstream.ReadError)) {
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, []int{400, 404}, e.Status)
			return
		}
		require.NotEmpty(t, got.Filename)
		_, err = json.Marshal(got.Options)
		require.NoError(t, err)
	})
}

// TestFileInAnotherField: a recording in another field than file is refused with
// the field's name.
func TestFileInAnotherField(t *testing.T) {
	for _, content := range []string{"\xff\xfb\x90", strings.Repeat("a", maxFormField+1)} {
		body := "--x\r\nContent-Disposition: form-data; name=\"audio\"; filename=\"a.mp3\"\r\n\r\n" + content + "\r\n--x--\r\n"
		_, err := ReadForm(multipart.NewReader(strings.NewReader(body), "x"), Names{}, false, nil, nil)
		assert.ErrorContains(t, err, "audio: is a file: the recording is expected in the field file")
	}
}

// writing is a form as written by some client.
type writing struct {
	fields [][2]string // in any order, except within a list
	name   string      // of the file
}

// read reads a client's form, with the recordings of known speakers.
func (w writing) read(t require.TestingT) (*Form, []string) {
	var buf bytes.Buffer
	mw := multipart.NewWriter(&buf)
	for _, f := range w.fields {
		require.NoError(t, mw.WriteField(f[0], f[1]))
	}
	header := `form-data; name="file"`
	if w.name != "" {
		header += `; filename="` + w.name + `"`
	}
	part, err := mw.CreatePart(map[string][]string{"Content-Disposition": {header}})
	require.NoError(t, err)
	_, _ = part.Write([]byte("RIFF"))
	require.NoError(t, mw.Close())
	var heard []string
	form, err := ReadForm(multipart.NewReader(&buf, mw.Boundary()), Names{}, false, func(_ string, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}, func(r io.Reader) error {
		data, err := io.ReadAll(r)
		heard = append(heard, string(data))
		return err
	})
	require.NoError(t, err, "%q", w.fields)
	return form, heard
}

// request is a request, independent of the way of writing it.
type request struct {
	scalars   map[string]string
	lists     map[string][]string
	threshold float64
	silence   int
	chunked   bool
}

func drawRequest(t *rapid.T) request {
	r := request{scalars: map[string]string{"response_format": "diarized_json"}, lists: map[string][]string{}}
	draw := func(name string, values ...string) {
		if rapid.Bool().Draw(t, name+" given") {
			r.scalars[name] = rapid.SampledFrom(values).Draw(t, name)
		}
	}
	draw("model", "whisper-1", "gpt-transcribe", "gpt-4o-mini-transcribe-2025-12-15")
	draw("prompt", "A talk, with commas.", "[1]")
	draw("temperature", "0", "0.25", "1")
	draw("audio_track", "1", "2")
	draw("stream", "true", "false")
	r.lists["languages"] = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"en", "de", "fr", "zh"}), 0, 4, rapid.ID).Draw(t, "languages")
	word := rapid.StringMatching(`[A-Za-zé][A-Za-z ]{0,6}[a-z]`)
	r.lists["keywords"] = rapid.SliceOfN(word, 0, 5).Draw(t, "keywords")
	r.lists["timestamp_granularities"] = rapid.SliceOfN(rapid.SampledFrom([]string{"word", "segment"}), 0, 2).Draw(t, "granularities")
	r.lists["known_speaker_names"] = rapid.SliceOfNDistinct(word, 0, 4, rapid.ID).Draw(t, "speakers")
	for i := range r.lists["known_speaker_names"] {
		r.lists[referencesName] = append(r.lists[referencesName], "data:audio/wav;base64,"+base64.StdEncoding.EncodeToString([]byte{byte(i)}))
	}
	r.chunked = rapid.Bool().Draw(t, "chunked")
	r.threshold, r.silence = float64(rapid.IntRange(0, 4).Draw(t, "threshold"))/4, rapid.IntRange(0, 3).Draw(t, "silence")*100
	return r
}

// write writes the request in one of the accepted ways, in random order.
func (r request) write(t *rapid.T) writing {
	w := writing{name: rapid.SampledFrom([]string{"", "audio"}).Draw(t, "file")}
	var groups [][][2]string // groups in any order
	empty := []string{"language", "user", "prompt", "temperature", "stream", "model", "chunking_strategy", "include[]", "keywords", "known_speaker_references[]"}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(empty), 0, 4).Draw(t, "empty") {
		groups = append(groups, [][2]string{{name, ""}})
	}
	if rapid.Bool().Draw(t, "auto") {
		groups = append(groups, [][2]string{{"language", "auto"}})
	}
	for _, name := range slices.Sorted(maps.Keys(r.scalars)) {
		value := r.scalars[name]
		if name == "temperature" {
			value = rapid.SampledFrom([]string{value, value + "e0"}).Draw(t, "exponent")
		}
		if name != "prompt" {
			value = rapid.SampledFrom([]string{value, " " + value + "\n"}).Draw(t, name+" written")
		}
		groups = append(groups, [][2]string{{name, value}})
	}
	for _, name := range slices.Sorted(maps.Keys(r.lists)) {
		groups = append(groups, writeList(t, name, r.lists[name]))
	}
	groups = append(groups, r.writeChunking(t)...)
	for _, group := range rapid.Permutation(groups).Draw(t, "order") {
		w.fields = append(w.fields, group...)
	}
	return w
}

func writeList(t *rapid.T, name string, list []string) (fields [][2]string) {
	way := rapid.SampledFrom([]string{"name[]", "name", "name[0]", "JSON", "commas"}).Draw(t, "way of "+name)
	if name == referencesName && way == "commas" { // each data URL contains a comma
		way = "JSON"
	}
	switch way {
	case "JSON":
		text, _ := json.Marshal(list)
		return [][2]string{{rapid.SampledFrom([]string{name, name + "[]"}).Draw(t, "name"), string(text)}}
	case "commas":
		return [][2]string{{name, strings.Join(list, rapid.SampledFrom([]string{",", ", "}).Draw(t, "comma"))}}
	}
	for i, entry := range list {
		fields = append(fields, [2]string{map[string]string{"name[]": name + "[]", "name": name, "name[0]": fmt.Sprintf("%s[%d]", name, i)}[way], entry})
	}
	return fields
}

func (r request) writeChunking(t *rapid.T) [][][2]string {
	if !r.chunked {
		return nil
	}
	threshold, silence := fmt.Sprint(r.threshold), fmt.Sprint(r.silence)
	if rapid.Bool().Draw(t, "as a float") {
		silence += ".0"
	}
	way := rapid.SampledFrom([]string{"JSON", "chunking_strategy[%s]", "chunking_strategy.%s"}).Draw(t, "chunking")
	if way == "JSON" {
		return [][][2]string{{{"chunking_strategy", fmt.Sprintf(`{"type": "server_vad", "threshold": %s, "silence_duration_ms": %s, "prefix_padding_ms": null}`, threshold, silence)}}}
	}
	var out [][][2]string
	for _, member := range [][2]string{{"type", "server_vad"}, {"threshold", threshold}, {"silence_duration_ms", silence}} {
		out = append(out, [][2]string{{fmt.Sprintf(way, member[0]), member[1]}})
	}
	return out
}

// TestFormsInEveryNotation: a form written in any of the accepted ways is the
// same request.
func TestFormsInEveryNotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		one, other := r.write(t), r.write(t)
		first, heard := one.read(t)
		second, heardToo := other.read(t)
		require.Equal(t, first, second, "%q and %q", one.fields, other.fields)
		require.Equal(t, heard, heardToo)
		require.Equal(t, r.lists["known_speaker_names"], append([]string{}, first.Speakers...))
		require.Equal(t, r.lists["keywords"], append([]string{}, first.Options.Hotwords...))
		require.Equal(t, len(r.lists["languages"]) == 1, first.Options.ASRLanguage != nil)
		require.Equal(t, r.scalars["stream"] == "true", first.Stream)
		if r.chunked {
			require.Equal(t, []any{r.threshold, r.silence}, []any{*first.Options.VADThreshold, *first.Options.VADMinSilenceMS})
		}
	})
}

// TestOldClientsForms: a file name in a client's own encoding is read, and if a
// field occurs twice, the last one counts.
func TestOldClientsForms(t *testing.T) {
	form, _ := writing{name: "M\xfcnchen.opus", fields: [][2]string{
		{"model", "unknown"},
		{"language", "de"},
		{"temperature", "warm"},
		{"stream", "maybe"},
		{"audio_track", "first"},
		{"chunking_strategy[threshold]", "loud"},
		{"model", "whisper-1"},
		{"language", "auto"},
		{"temperature", "0.5"},
		{"stream", "false"},
		{"audio_track", "1"},
		{"chunking_strategy", `{"type": "server_vad", "threshold": 0.9}`},
		{"chunking_strategy", `{"type": "server_vad", "silence_duration_ms": 300}`},
	}}.read(t)
	assert.Equal(t, "München.opus", form.Filename)
	assert.Equal(t, "whisper-1", form.model.id)
	assert.InDelta(t, 0.5, *form.Options.ASRTemperature, 1e-9)
	assert.Nil(t, form.Options.ASRLanguage)
	assert.Nil(t, form.Options.VADThreshold)
	assert.Equal(t, 300, *form.Options.VADMinSilenceMS)
}

// TestListsOutOfOrder: numbered entries in a wrong order are refused, because
// names and recordings of speakers are matched by position.
func TestListsOutOfOrder(t *testing.T) {
	r := formReading{form: &Form{}, entries: map[string]int{}}
	require.ErrorContains(t, r.inOrder(readName("known_speaker_names[1]")), "known_speaker_names[]: number 1 is out of place, expected number 0")
	require.NoError(t, r.inOrder(readName("known_speaker_names[0]")))
}

// TestNamesOfModels: models of the folder are found under the names of their
// files, publishers and other programs, if all workers have them.
func TestNamesOfModels(t *testing.T) {
	base, turbo := spec.NamedModel{Name: "whisper-base-q8_0", Tier: spec.TierStandard}, spec.NamedModel{Name: "ggml-large-v3-turbo-q5_0", Tier: spec.TierStandard}
	english := spec.NamedModel{Name: "tiny.en", Tier: spec.TierStandard, Languages: []string{"en"}}
	ctc := spec.NamedModel{Name: "parakeet", Tier: spec.TierOptimized, Languages: []string{"en"}}
	n := Names{Aliases: map[string]string{"quick": "tiny.en", "best": "whisper-1"}, Sets: []spec.Available{
		{Standard: true, Models: []spec.NamedModel{base, turbo, english, ctc}}, {Standard: true, Models: []spec.NamedModel{base, turbo, english, ctc, {Name: "alone"}}},
	}}
	for name, file := range map[string]string{
		"whisper-base-q8_0": base.Name, "Systran/faster-whisper-base": base.Name, "base": base.Name, "openai/whisper-base": base.Name,
		"whisper-large-v3-turbo": turbo.Name, "deepdml/faster-whisper-large-v3-turbo-ct2": turbo.Name, "turbo": turbo.Name,
		"quick": english.Name, "Whisper-Tiny.en": english.Name, "parakeet": ctc.Name, "best": "", "gpt-4o-transcribe-2027-01-01": "",
	} {
		m, err := n.find(name)
		require.NoError(t, err, name)
		assert.Equal(t, file, m.file, name)
		assert.Equal(t, name, m.id)
	}
	sizes := []string{"small", "tiny", "whisper-large-v3", "Systran/faster-distil-whisper-large-v3.5", "ggml-medium.en-q5_0", "openai/whisper-large"}
	for _, name := range sizes {
		m, err := n.find(name)
		require.NoError(t, err, name)
		assert.Equal(t, model{id: name, optimize: &no}, m, "another size of Whisper is the standard tier")
		assert.Equal(t, "otograph-standard", m.used(spec.Result{Tier: spec.TierStandard}))
	}
	n.Strict = true
	for _, name := range append(sizes, "alone", "whisper-2", "large-v4", "basement") {
		_, err := n.find(name)
		var e *Error
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, []any{404, "model"}, []any{e.Status, e.Param})
		assert.Contains(t, e.Message, "whisper-base-q8_0")
	}
	_, err := Names{}.find("base")
	assert.ErrorContains(t, err, "no worker has reported its models yet")
	m, err := n.Find("parakeet", time.Now())
	require.NoError(t, err)
	assert.Equal(t, []any{[]string{"en"}, false, false}, []any{m.Languages, m.WordTimes, m.Translates})
}

// TestListOfAliases: an alias of a missing model (no worker has reported yet)
// is left out; an alias that replaces a builtin name is listed once.
func TestListOfAliases(t *testing.T) {
	names := Names{Aliases: map[string]string{"house": "ggml-large-v3", "whisper-1": "ggml-base"}}
	ids := func() (ids []string) {
		for _, m := range names.List(time.Now()).Data {
			ids = append(ids, m.ID)
		}
		return ids
	}
	var fixed []string
	for _, m := range builtin {
		if m.id != "whisper-1" {
			fixed = append(fixed, m.id)
		}
	}
	assert.ElementsMatch(t, fixed, ids())
	names.Sets = []spec.Available{{Standard: true, Models: []spec.NamedModel{{Name: "base", Tier: spec.TierStandard}}}}
	assert.ElementsMatch(t, append(fixed, "whisper-1", "base"), ids())
}
