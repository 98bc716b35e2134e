package httpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse reads a submission and returns it with its audio.
func parse(body io.Reader) (*submission, []byte, error) {
	var audio []byte
	s, err := readSubmission(body, func(r io.Reader) error {
		var err error
		audio, err = io.ReadAll(r)
		return err
	})
	return s, audio, answered(err)
}

// answered returns the response to an error, nil for none.
func answered(err error) error {
	if err == nil {
		return nil
	}
	return new(Server).translate(err)
}

func TestSubmissionTakesFieldsInAnyOrder(t *testing.T) {
	data := []byte("0123456789")
	b64 := base64.StdEncoding.EncodeToString(data)
	parts := []string{
		`"audio_base64":"` + b64 + `"`, `"audio_filename":"a.wav"`, `"options":{"enable_diarize":false}`,
		`"callback_url":"https://example.com/"`, `"callback_secret":"s\u00e9"`, `"batch_mode":true`, `"allow_training":true`,
	}
	for range 50 {
		rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		s, audio, err := parse(iotest.OneByteReader(strings.NewReader("{" + strings.Join(parts, " ,\n") + "}\n")))
		require.NoError(t, err)
		assert.Equal(t, data, audio)
		assert.Equal(t, "a.wav", s.filename)
		assert.Equal(t, "sé", s.callbackSecret)
		assert.True(t, s.batch && s.allowTraining && s.options.EnableDiarize != nil && !*s.options.EnableDiarize)
	}
}

func TestBase64AlphabetsAndPaddings(t *testing.T) {
	for n := range 40 {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(255 - 7*i)
		}
		for name, enc := range map[string]*base64.Encoding{
			"std": base64.StdEncoding, "url": base64.URLEncoding, "rawstd": base64.RawStdEncoding, "rawurl": base64.RawURLEncoding,
		} {
			text := enc.EncodeToString(data)
			var wrapped, escaped strings.Builder
			for i, c := range text {
				if i%5 == 4 {
					wrapped.WriteString("\r\n")
				}
				wrapped.WriteRune(c)
				switch i % 3 {
				case 0:
					fmt.Fprintf(&escaped, `\u%04X`, c)
				case 1:
					fmt.Fprintf(&escaped, `\u%04x`, c)
				default:
					escaped.WriteString(strings.ReplaceAll(string(c), "/", `\/`))
				}
			}
			for form, s := range map[string]string{
				"plain": text, "raw line breaks": wrapped.String(), "escaped": escaped.String(),
				"escaped line breaks": strings.ReplaceAll(wrapped.String(), "\r\n", `\r\n`),
				"slashes escaped":     strings.ReplaceAll(text, "/", `\/`),
				"data URL":            "data:audio/ogg;codecs=opus;base64," + text,
				"data URL, escaped":   `DATA:audio\/wav;BASE64,` + escaped.String(),
			} {
				_, audio, err := parse(strings.NewReader(`{"audio_base64":"` + s + `","audio_filename":"a.wav"}`))
				require.NoError(t, err, "%s %s %d: %s", name, form, n, s)
				assert.True(t, bytes.Equal(data, audio), "%s %s %d", name, form, n)
			}
		}
	}
}

func TestInvalidBase64IsRefused(t *testing.T) {
	for _, text := range []string{
		"A", "AAAAA", "A===", "AA===", "AAA==", "AAAA=", "=", "====", "AA=A", "AA=", "A=A=", "AAA=AAAA", "A!AA", "AAA\u00e9", `AAA\u00e9`, `AA\u003d\u003d\u003d`,
		`AA\x`, `AA\u00g0`, `AA\"A`, `AA\\`, "data:audio/wav,AAAA", "data:audio/wav;base64", "data:audio/wav;base64AAAA", "data:" + strings.Repeat("a", 2000) + ";base64,AAAA", "AA\x00AA", "AA,AA", "AAAA\x80",
	} {
		_, _, err := parse(strings.NewReader(`{"audio_filename":"a.wav","audio_base64":"` + text + `"}`))
		var e *apiError
		require.ErrorAs(t, err, &e, "%q", text)
		assert.Equal(t, 400, e.Status, "%q", text)
	}
}

func TestInvalidSubmissionsAre400(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for _, tt := range []struct{ name, body, want string }{
		{"nothing", "", "the body is empty"},
		{"spaces", strings.Repeat(" ", 100), "the body is empty"},
		{"array", "[]", "must be a JSON object"},
		{"string", `"a"`, "must be a JSON object"},
		{"null", "null", "must be a JSON object"},
		{"byte order mark", "\ufeff{}", "one of them is required"},
		{"two byte order marks", "\ufeff\ufeff{}", "must be a JSON object"},
		{"open", "{", "ends in the middle"},
		{"cut in a name", `{"audio_u`, "ends in the middle"},
		{"cut in a value", `{"audio_url":"http://`, "ends in the middle"},
		{"cut in the audio", `{"audio_base64":"AAAA`, "ends in the middle"},
		{"no field", "{}", "one of them is required"},
		{"comma first", `{,"audio_url":"x"}`, "expected a field name"},
		{"comma last", `{"audio_url":"x",}`, "expected a field name"},
		{"no comma", `{"audio_url":"x" "batch_mode":true}`, "expected ',' or '}'"},
		{"no colon", `{"audio_url" "x"}`, "expected ':'"},
		{"no value", `{"audio_url":}`, "audio_url"},
		{"single quotes", `{'audio_url':'x'}`, "double quotes"},
		{"two objects", `{"audio_url":"x"}{}`, "unexpected text after"},
		{"text behind", `{"audio_url":"x"} x`, "unexpected text after"},
		{"unknown", `{"audio_urls":"x"}`, `"audio_url"`},
		{"wrong case", `{"Audio_URL":"x"}`, `did you mean "audio_url"`},
		{"twice", `{"audio_url":"x","audio_url":"y"}`, "audio_url: is given twice"},
		{"twice, once escaped", `{"audio_url":"x","audio\u005furl":"y"}`, "audio_url: is given twice"},
		{"both", `{"audio_url":"x","audio_base64":"AAAA","audio_filename":"a.wav"}`, "use only one of the two"},
		{"both, other order", `{"audio_base64":"AAAA","audio_url":"x","audio_filename":"a.wav"}`, "use only one of the two"},
		{"no file name", `{"audio_base64":"AAAA"}`, "audio_filename: is required"},
		{"empty file name", `{"audio_base64":"AAAA","audio_filename":""}`, "audio_filename"},
		{"number as URL", `{"audio_url":1}`, "audio_url: must be a string, not 1"},
		{"null as URL", `{"audio_url":null}`, "one of them is required"},
		{"huge number", `{"audio_url":` + strings.Repeat("9", 5000) + `}`, "audio_url: must be a string"},
		{"array as URL", `{"audio_url":["x"]}`, "audio_url: must be a string"},
		{"number as audio", `{"audio_base64":1}`, "audio_base64: must be a string"},
		{"null as audio", `{"audio_base64":null}`, "one of them is required"},
		{"object as audio", `{"audio_base64":{}}`, "audio_base64: must be a string"},
		{"string as boolean", `{"audio_url":"x","batch_mode":"true"}`, "batch_mode: must be true or false"},
		{"number as boolean", `{"audio_url":"x","batch_mode":1}`, "batch_mode: must be true or false"},
		{"nul", `{"audio_url":"x","allow_training":nul}`, "allow_training: not valid JSON"},
		{"options as array", `{"audio_url":"x","options":[]}`, "options: must be an object"},
		{"unknown option", `{"audio_url":"x","options":{"enable_ars":true}}`, `"enable_asr"`},
		{"bound", `{"audio_url":"x","options":{"asr_beam_size":21}}`, "options.asr_beam_size: must be between 1 and 20, not 21"},
		{"deep", `{"options":` + deep, "levels deep"},
		{"deep in an unknown field", `{"x":` + deep, "no such field"},
		{"invalid UTF-8 in a value", "{\"audio_url\":\"\xff\"}", "not valid UTF-8"},
		{"invalid UTF-8 in a name", "{\"audio_\xff\":1}", "field name"},
		{"control character", "{\"audio_url\":\"a\nb\"}", "not valid JSON"},
		{"NUL", `{"audio_url":"x","callback_secret":"a\u0000b"}`, "NUL"},
		{"long name", `{"` + strings.Repeat("a", 1000) + `":1}`, "field name is longer"},
		{"endless string", `{"audio_filename":"` + strings.Repeat("a", 2<<20) + `"}`, "longer than"},
		{"long file name", `{"audio_filename":"` + strings.Repeat("a", 300) + `"}`, "has 300 characters, at most 255"},
		{"NaN", `{"audio_url":NaN}`, "audio_url: not valid JSON"},
		{"comment", `{/*x*/"audio_url":"x"}`, "expected a field name"},
		{"empty callback", `{"audio_url":"x","callback_url":""}`, "callback_url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := parse(strings.NewReader(tt.body))
			var e *apiError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, 400, e.Status)
			assert.Contains(t, e.Message, tt.want)
			assert.Less(t, len(e.Message), 400)
		})
	}
}

func TestInvalidBatchesAre400(t *testing.T) {
	many := `"http://a.example.com/"` + strings.Repeat(`,"http://a.example.com/"`, 9_999)
	for _, tt := range []struct{ name, body, want string }{
		{"no batch_mode", `{"audio_url":["x"]}`, "batch_mode: must be true"},
		{"batch_mode false", `{"audio_url":["x"],"batch_mode":false}`, "batch_mode: must be true"},
		{"batch_mode text", `{"audio_url":["x"],"batch_mode":"true"}`, "batch_mode: must be true or false"},
		{"no URLs", `{"batch_mode":true}`, "audio_url: is required"},
		{"empty", `{"batch_mode":true,"audio_url":[]}`, "audio_url: must contain 1 to 100 URLs"},
		{"string", `{"batch_mode":true,"audio_url":"x"}`, "must be an array of strings"},
		{"null", `{"batch_mode":true,"audio_url":null}`, "audio_url: is required"},
		{"null entry", `{"batch_mode":true,"audio_url":[null]}`, "entry 0 must be a string"},
		{"number entry", `{"batch_mode":true,"audio_url":["x",1]}`, "must be an array of strings"},
		{"10,000", `{"batch_mode":true,"audio_url":[` + many + `]}`, "has 10000 entries, at most 100"},
		{"fewer names", `{"batch_mode":true,"audio_url":["x","y"],"audio_filename":["a.wav"]}`, "equally long"},
		{"no names", `{"batch_mode":true,"audio_url":["x"],"audio_filename":[]}`, "equally long"},
		{"Base64", `{"batch_mode":true,"audio_base64":"AAAA"}`, "no such field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readBatch(strings.NewReader(tt.body))
			err = answered(err)
			var e *apiError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, 400, e.Status)
			assert.Contains(t, e.Message, tt.want)
		})
	}
}

// endless returns a submission of n Base64 characters, generated while it is
// read.
func endless(n int) io.Reader {
	return io.MultiReader(
		strings.NewReader(`{"audio_base64":"`),
		io.LimitReader(repeat("UklGRiQAAABXQVZF"), int64(n)),
		strings.NewReader(`","audio_filename":"a.wav"}`),
	)
}

type repeat string

func (r repeat) Read(p []byte) (int, error) {
	n := 0
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	if n == 0 {
		n = copy(p, r)
	}
	return n, nil
}

// TestSubmissionIsNotHeldInMemory reads a long body and measures allocations;
// TestLongUpload does the same over HTTP.
func TestSubmissionIsNotHeldInMemory(t *testing.T) {
	const size = 16 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var n int64
	_, err := readSubmission(endless(size-100), func(r io.Reader) error {
		var err error
		n, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 64<<10))
		return err
	})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.EqualValues(t, (size-100)/4*3, n)
	allocated := after.TotalAlloc - before.TotalAlloc
	assert.Less(t, allocated, uint64(1<<20))
	t.Logf("%d MB of Base64: %d KB allocated in all", size>>20, allocated>>10)
}

// TestSpacesAreNotHeldInMemory: a body of white space is refused without
// holding it in memory.
func TestSpacesAreNotHeldInMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := parse(io.LimitReader(repeat(strings.Repeat(" ", 4096)), 20<<20))
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "the body is empty")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// FuzzSubmission compares the streaming reader with encoding/json and
// encoding/base64 on inputs that both can read, and requires a proper refusal
// of all others.
func FuzzSubmission(f *testing.F) {
	for _, s := range []string{
		`{"audio_base64":"UklGRg==","audio_filename":"a.wav"}`,
		`{"audio_filename":"a.wav","audio_base64":"Ukl\nGRg","options":{"optimize":null}}`,
		`{"audio_url":"https://example.com/a.wav","batch_mode":true,"callback_url":"https://example.com/"}`,
		`{"audio_base64":"_-_-\u002f+\/=="}`, `{"audio_url":["x"]}`, "{", `{"a":[[[[]]]]}`, "{\"audio_url\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s, audio, err := parse(bytes.NewReader(body))
		_, slow, slowErr := parse(iotest.OneByteReader(bytes.NewReader(body)))
		require.Equal(t, err == nil, slowErr == nil)
		require.Equal(t, audio, slow)
		if err != nil {
			var e *apiError
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, 400, e.Status)
			require.NotEmpty(t, e.Message)
			return
		}
		var plain struct {
			AudioURL    string `json:"audio_url"`
			AudioBase64 string `json:"audio_base64"`
			Filename    string `json:"audio_filename"`
			Batch       bool   `json:"batch_mode"`
		}
		clean := bytes.Map(func(r rune) rune { // only the streaming reader accepts raw line breaks
			if r == '\n' || r == '\r' || r == '\t' {
				return ' '
			}
			return r
		}, body)
		require.NoError(t, json.Unmarshal(clean, &plain))
		assert.Equal(t, plain.AudioURL, s.audioURL)
		assert.Equal(t, plain.Filename, s.filename)
		assert.Equal(t, plain.Batch, s.batch)
		text := strings.NewReplacer("-", "+", "_", "/", " ", "", "\n", "", "\r", "", "\t", "").Replace(plain.AudioBase64)
		want, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, audio))
	})
}
