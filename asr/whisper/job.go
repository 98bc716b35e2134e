package whisper

import (
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

// vocabulary maps tokens to text. Tokens from eot on are not text; tokens from
// begin on are time marks, 0.02 s apart.
type vocabulary interface {
	Text(token int32) string
	Tokenize(text string) []int32
	ends() (eot, begin int32)
}

// job is a window to decode, by as many searches as its plan asks for.
type job struct {
	pcm    *audio.PCM
	window decode.Window
	rows   int            // the most beams or samples of its searches
	keep   bool           // the encoded window will be needed again
	brief  bool           // it is encoded with little silence after its sound
	whole  bool           // it is encoded with all silence after its sound
	patch  bool           // it repairs a text: a doubtful one is not decoded again
	draft  []int32        // a likely text, for a search with one beam
	finder *decode.Finder // removes repeated sound from the window before it is encoded; nil keeps it
	echoes []decode.Echo  // the removed sound
	plan   plan
	stats  asr.Stats // counts of the work done
}

// samples returns a copy of the sound of the job's window.
func (j *job) samples() []float32 { return j.window.Samples(make([]float32, 0, j.window.Len()), j.pcm) }

// plan decides which searches a window needs.
type plan interface {
	// next returns the search after f's, or nil when the text is decided. A nil
	// f restarts the plan.
	next(f *outcome) *request
	// text returns the decided text, to be timed; nil if none is kept.
	text() *outcome
}

// request is a search for a text.
type request struct {
	language    string
	others      []string // other languages that the window may be in
	prompt      []int32
	translate   bool
	beam        int // at temperature 0
	temperature float64
	samples     int     // at other temperatures
	quiet       float64 // the no-speech probability above which nothing is decoded
	most        int     // the limit of the text's tokens; 0 is the model's limit
	names       []name  // to look for in the text
}

// width returns the number of texts followed at a time.
func (r *request) width() int {
	if r.temperature > 0 {
		return max(r.samples, 1)
	}
	return max(r.beam, 1)
}

// outcome is the result of a search.
type outcome struct {
	attempt
	noSpeech  float64
	languages map[string]float64 // probabilities, as shares among the requested languages; nil if not asked
	other     string             // the language to decode in instead; text is then empty
	steps     int                // of the decoder
}

// firstPass holds the results of the decoder's first pass over a window: the
// probabilities of no speech and of each language, by code.
type firstPass struct {
	noSpeech  float64
	languages map[string]float64
}

// token is a decoded token.
type token struct {
	id   int32
	logp float32
}

// spell returns the text's tokens; nil if the vocabulary lacks a character.
func spell(v interface {
	Text(token int32) string
	Tokenize(text string) []int32
}, text string,
) []int32 {
	tokens := v.Tokenize(text)
	var written strings.Builder
	for _, t := range tokens {
		written.WriteString(v.Text(t))
	}
	if written.String() != text {
		return nil
	}
	return tokens
}
