package systems

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/internal/test/outside"
)

func TestMain(m *testing.M) { outside.Main(m) }

// text returns the texts of a result's segments.
func text(res *otograph.Result) string {
	var out []string
	for _, s := range res.Segments {
		out = append(out, s.Text)
	}
	return strings.Join(out, " / ")
}

// outputs maps programs to their output for a.wav.
var outputs = map[string]struct {
	output, text string
	words        int
	speakers     int
	language     string
}{
	"text":                {"Hello\nthere.\n", "Hello\nthere.", 0, 0, ""},
	"nothing":             {"\n", "", 0, 0, ""},
	"remark":              {"[music] hello", "[music] hello", 0, 0, ""},
	"OpenAI":              {`{"text":"Hello there.","language":"english","duration":2.5,"segments":[{"id":0,"start":0,"end":2,"text":" Hello there."}],"words":[{"word":"Hello","start":0,"end":0.5},{"word":"there","start":0.5,"end":1}]}`, "Hello there.", 2, 0, "en"},
	"OpenAI's short":      {`{"text":"Hello."}`, "Hello.", 0, 0, ""},
	"faster-whisper":      {`[{"start":0.0,"end":1.0,"text":" Hello","words":[{"start":0.0,"end":0.9,"word":" Hello","probability":0.9}]},{"start":1.0,"end":2.0,"text":" there"}]`, "Hello / there", 1, 0, ""},
	"WhisperX":            {`{"segments":[{"start":0,"end":1,"text":" Hello 5","speaker":"SPEAKER_01","words":[{"word":"Hello","start":0,"end":0.5,"score":0.8},{"word":"5"}]}],"word_segments":[],"language":"de"}`, "Hello 5", 1, 1, "de"},
	"whisper.cpp":         {`{"systeminfo":"x","result":{"language":"en"},"transcription":[{"timestamps":{"from":"00:00:00,000","to":"00:00:02,000"},"offsets":{"from":0,"to":2000},"text":" Hello"}]}`, "Hello", 0, 0, "en"},
	"whisper.cpp's lines": {"\n[00:00:00.000 --> 00:00:02.000]   Hello\n[00:00:02.000 --> 00:01:04.500]   there\n", "Hello / there", 0, 0, ""},
	"sherpa-onnx":         {"Creating recognizer ...\n----\n{\"lang\": \"en\", \"text\": \"HELLO THERE\", \"timestamps\": [0.1, 0.5, 0.9], \"tokens\":[\" HEL\", \"LO\", \" THERE\"], \"words\": []}\n----\nnum threads: 1\n", "HELLO THERE", 2, 0, "en"},
	"NeMo":                {"{\"audio_filepath\": \"x/b.wav\", \"duration\": 1, \"text\": \"no\", \"pred_text\": \"no\"}\n{\"audio_filepath\": \"x/a.wav\", \"duration\": 1, \"text\": \"reference\", \"pred_text\": \"hello\"}\n", "hello", 0, 0, ""},
	"SegLST":              {`[{"session_id":"a","speaker":"A","start_time":0,"end_time":1,"words":"hello"},{"session_id":"b","words":"no"},{"session_id":"a","speaker":"B","start_time":1,"end_time":2,"words":"there"}]`, "hello / there", 0, 2, ""},
	"SubRip":              {"1\n00:00:00,000 --> 00:00:01,000\n<i>Hello</i>\nthere\n\n2\n00:00:01,000 --> 00:00:02,000\nAnn\n", "Hello there / Ann", 0, 0, ""},
	"WebVTT":              {"WEBVTT\n\n00:00.000 --> 00:01.000\n<v Ann>Hello\n", "Hello", 0, 1, ""},
	"CTM":                 {";; words\na 1 0.10 0.40 hello 0.98\na 1 0.60 0.30 there\nb 1 0 1 no\n", "hello there", 2, 0, ""},
	"STM":                 {"a 1 ann 0.0 1.5 <o,f0> hello there\na 1 ben 1.5 2.0 yes\nb 1 ann 0 1 no\n", "hello there / yes", 0, 2, ""},
	"RTTM":                {"SPEAKER a 1 0.0 1.5 <NA> <NA> ann <NA> <NA>\nSPEAKER a 1 1.5 1 <NA> <NA> ben <NA> <NA>\n", "", 0, 2, ""},
	"Otograph":            {`{"language":"en","segments":[{"id":0,"start":0,"end":1,"text":"Hello","speaker":"SPEAKER_0","words":[{"word":"Hello","start":0,"end":1,"probability":1}]}],"num_speakers":1,"diarize_segments":[{"start":0,"end":1.5,"speaker":"SPEAKER_0"}]}`, "Hello", 1, 1, "en"},
	"AssemblyAI":          {`{"audio_url":"a","language_code":"en_us","text":"Hello there. Yes.","words":[{"text":"Hello","start":250,"end":650,"confidence":1}],"audio_duration":3,"utterances":[{"start":250,"end":1200,"text":"Hello there.","speaker":"A","words":[{"text":"Hello","start":250,"end":650,"confidence":1},{"text":"there.","start":700,"end":1200,"confidence":1}]},{"start":2000,"end":2500,"text":"Yes.","speaker":"B"}]}`, "Hello there. / Yes.", 2, 2, "en"},
	"Otograph's lines":    {"0:00.0 –  0:03.0  sound      [Music 98 %]\n0:00.4 –  0:01.2  SPEAKER_0  Hello\n0:01.5 – 10:02.0  Ann Lee    there\n\nWARNING: x\n", " / Hello / there / ", 0, 0, ""},
	"Otograph's SubRip":   {"1\n00:00:00,000 --> 00:00:01,000\n[SPEAKER_0] {\\an8}Hello\n\n2\n00:00:01,000 --> 00:00:02,000\n[CHANNEL_1] there\n", "Hello / there", 0, 2, ""},
	"escaped WebVTT":      {"WEBVTT\n\n00:00.000 --> 00:01.000\n[SPEAKER_00]: AT&amp;T\n", "AT&T", 0, 1, ""},
	"speakers":            {"[Ann]: Hello\nthere\n[SPEAKER_01]: yes\n(speaker 1) no\nSpeaker 2: a\nS03: b\n[SPEAKER_04]\nc [SPEAKER_TURN] d", "Hello\nthere / yes / no / a / b / c  d", 0, 0, ""},
	"faster-whisper's":    {"[0.00s -> 2.50s]  Hello\n[62.50s -> 63.00s]  there\n", "Hello / there", 0, 0, ""},
	"SenseVoice":          {"<|en|><|NEUTRAL|><|Speech|><|withitn|>Hello", "Hello", 0, 0, ""},
	"with tokens":         {`[{"id":1,"start":0.5,"end":1.0,"text":" Hello","tokens":[1,2]},{"start":1.0,"end":2.0,"text":" there","tokens":[3]}]`, "Hello / there", 0, 0, ""},
	"Deepgram":            {`{"metadata":{"duration":2},"results":{"channels":[{"alternatives":[{"transcript":"Hello there.","words":[]},{"transcript":"Yellow."}]}],"utterances":[]}}`, "Hello there.", 0, 0, ""},
	"Speechmatics":        {`{"results":[{"alternatives":[{"content":"Hello","speaker":"S1"}],"start_time":0,"type":"word"},{"alternatives":[{"content":"there"}]}]}`, "Hello there", 0, 0, ""},
	"Azure":               {`{"duration":"PT2S","combinedRecognizedPhrases":[{"lexical":"hello","display":"Hello."}]}`, "Hello.", 0, 0, ""},
	"Vosk":                {"{\n\"result\":[{\"word\":\"hello\"}],\n\"text\":\"hello\"}\n{\"text\":\"there\"}", "hello / there", 0, 0, ""},
	"words":               {`[{"word":"Hello","start":0,"end":1},{"word":"there","start":1,"end":2}]`, "Hello there", 0, 0, ""},
	"podcast":             {`{"version":"1.0.0","segments":[{"speaker":"A","startTime":0,"endTime":1,"body":"Hello"},{"body":"there"}]}`, "Hello there", 0, 0, ""},
	"turns as segments":   {`{"segments":[{"start":0,"end":1,"speaker":"A"}]}`, "", 0, 1, ""},
	"rolling captions":    {"WEBVTT\nKind: captions\n\n00:00.000 --> 00:01.000\nHello<00:00:00.300><c> there</c>\n\n00:01.000 --> 00:01.010\nHello there\n \n\n00:01.010 --> 00:02.000\nHello there\nAnn\n", "Hello there /  / Ann", 0, 0, ""},
	"UTF-16":              {"\xff\xfeH\x00i\x00", "Hi", 0, 0, ""},
}

func TestParse(t *testing.T) {
	for name, c := range outputs {
		t.Run(name, func(t *testing.T) {
			res, err := parse([]byte(c.output), "x/a.wav")
			require.NoError(t, err)
			assert.Equal(t, c.text, text(res))
			words := 0
			for _, s := range res.Segments {
				words += len(s.Words)
			}
			assert.Equal(t, c.words, words)
			if name == "AssemblyAI" {
				assert.Equal(t, []float64{1.2, 2.5}, []float64{res.Segments[0].Words[1].End, res.Segments[1].End}, "its times are milliseconds")
			}
			assert.Equal(t, c.speakers, res.NumSpeakers)
			assert.Equal(t, c.speakers > 0, res.Ran.Diarize)
			assert.Equal(t, name != "RTTM", res.Ran.ASR, "turns alone are not a transcript")
			assert.Equal(t, c.language, res.Language)
		})
	}
}

// Words removes times, speakers and marks, and leaves other texts alone.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"[SPEAKER_00]: good morning\n[SPEAKER_01]: yes":  "good morning\nyes",
		"[0.00s -> 2.00s] good morning":                  "good morning",
		"0:01.2 –  0:02.3  Anna  good morning":           "good morning",
		"00:00:01.000 --> 00:00:02.000\ngood\n":          "good",
		`{"text": "good morning"}`:                       "good morning",
		"good\n\nmorning":                                "good\n\nmorning",
		"rec1 good morning\nrec2 yes (laughs)":           "rec1 good morning\nrec2 yes (laughs)",
		"1 A 0.5 0.3 word":                               "1 A 0.5 0.3 word",
		"[music] { words } at 12:30, he said: “[x] yes”": "[music] { words } at 12:30, he said: “[x] yes”",
		"12:30 lunch\nat 5:10  tea":                      "12:30 lunch\nat 5:10  tea",
		"WARNING: evacuate":                              "WARNING: evacuate",
		"SPEAKER a 1 0.5 1.0 <NA> <NA> anna <NA> <NA>":   "SPEAKER a 1 0.5 1.0 <NA> <NA> anna <NA> <NA>",
		"": "",
	} {
		assert.Equal(t, want, Words(text))
	}
}

func TestOutputWithoutTranscriptIsAnError(t *testing.T) {
	for output, reason := range map[string]string{
		"<!DOCTYPE html><html><head><title>502 Bad Gateway</title>": "a page of markup (\"502 Bad Gateway\")",
		"[00:00.10] Hello":                                      "lyrics (LRC)",
		"Segment(id=1, seek=0, start=0.0":                       "print of Python's objects",
		"(0.0, 2.0, ' Hello')":                                  "print of Python's objects",
		"Ann Lee  0:05\nHello\n\nSpeaker 2  10:02\nthere":       "lines with times",
		"0:00\nHello\n0:02\nthere":                              "lines with times",
		"(00:00) Hello\n(00:02) there":                          "lines with times",
		"00:00:00 - 00:00:02 Hello\n00:00:02 - 00:00:04 there":  "lines with times",
		"File type = \"ooTextFile\"":                            "a TextGrid",
		`{"text": "Hel`:                                         "incomplete JSON",
		`[{"start": 0, "text": "a"}, {"st`:                      "incomplete JSON",
		`{"status": "queued"}`:                                  "expected JSON with the key text",
		`{"error": {"message": "no key"}}`:                      "it reports an error: {\"message\": \"no key\"}",
		`{"text": 7}`:                                           "not a transcript: key \"text\": expected a text, found a value of type number",
		`[{"words": [{"word": {}}]}]`:                           `not a transcript: key "words.word": expected a text`,
		"\x7fELF\x02\x01\x01\x00\x00":                           "expected a text in UTF-8",
		"WEBVTT\n\n00:00.000 -> broken -->\n":                   "expected times",
		"{\"audio_filepath\": \"b.wav\", \"pred_text\": \"x\"}": "none for a.wav",
	} {
		_, err := parse([]byte(output), "a.wav")
		require.ErrorIs(t, err, errOutput, "%q", output)
		assert.ErrorContains(t, err, reason)
	}
	_, err := parse(make([]byte, maxOutput+1), "a.wav")
	require.ErrorIs(t, err, errOutput)
}

func TestHostileTimes(t *testing.T) {
	res, err := parse([]byte(`{"segments":[{"start":-5,"end":-9,"text":"a"},{"start":1e300,"end":1,"text":"b"}],"diarize_segments":[{"start":3,"end":1,"speaker":"x"}]}`), "a.wav")
	require.NoError(t, err)
	for _, s := range res.Segments {
		assert.True(t, 0 <= s.Start && s.Start <= s.End && s.End <= datasets.MaxSeconds, "%+v", s)
	}
	assert.Equal(t, []otograph.Turn{{Start: 3, End: 3, Speaker: "x"}}, res.DiarizeSegments)
}

func FuzzParse(f *testing.F) {
	for _, c := range outputs {
		f.Add([]byte(c.output))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		res, err := parse(data, "a.wav")
		if err != nil {
			require.ErrorIs(t, err, errOutput)
			return
		}
		for _, s := range res.Segments {
			require.True(t, 0 <= s.Start && s.Start <= s.End && s.End <= 2*datasets.MaxSeconds, "%+v", s)
			for _, w := range s.Words {
				require.True(t, 0 <= w.Start && w.Start <= w.End && w.End <= 2*datasets.MaxSeconds, "%+v", w)
			}
		}
	})
}
