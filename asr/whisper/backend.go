package whisper

import (
	"context"
	"strings"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/decode"
)

// backend computes a model: our own network on the processor, libwhisper on a device.
type backend interface {
	vocabulary
	// decode decodes jobs with as many cores as the options allow, whose gate it passes,
	// and calls done with the number of each when it is decided, never concurrently. After
	// an error it begins no further job. That of an ended ctx may be any.
	decode(ctx context.Context, jobs []*job, opt asr.Options, done func(i int)) error
	// hear returns the findings of the decoder's first pass over each window.
	hear(ctx context.Context, pcm *audio.PCM, windows []decode.Window) ([]heard, error)
	free()
}

// vocabulary holds a backend's knowledge of the tokens. The numbers from eot on are no text,
// those from begin on time marks, 0.02 s apart.
type vocabulary interface {
	Text(token int32) string
	Tokenize(text string) []int32
	ends() (eot, begin int32)
}

// job is a window to be decoded, by as many searches as its plan asks for.
type job struct {
	pcm    *audio.PCM
	window decode.Window
	rows   int  // the most beams or samples of its searches
	keep   bool // the encoded window will be needed again
	sound  []float32
	plan   plan
	stats  asr.Stats // the work done, which the backend counts
}

// samples returns the sound of the job's window, at least so many samples, and keeps it for
// the next call.
func (j *job) samples(least int) []float32 {
	if j.sound == nil {
		j.sound = j.window.Samples(make([]float32, 0, max(j.window.Len(), least)), j.pcm)
		if len(j.sound) < least {
			j.sound = j.sound[:least] // silence up to here
		}
	}
	return j.sound
}

// plan decides which searches a window needs.
type plan interface {
	// next returns the search after the one that found f; the first where f is nil, after
	// which the plan starts again; nil when the text is decided.
	next(f *found) *request
	// text returns the decided text, whose words get times; nil if none do.
	text() *found
}

// request is a search for a text.
type request struct {
	language    string
	others      []string // languages in one of which the window may be instead
	prompt      []int32
	translate   bool
	beam        int // at temperature 0
	temperature float64
	samples     int     // at others
	quiet       float64 // the no-speech probability above which nothing is decoded
	most        int     // tokens of the text; 0 is the model's limit
	hot         *hotwords
}

// width is how many texts are followed at a time.
func (r *request) width() int {
	if r.temperature > 0 {
		return max(r.samples, 1)
	}
	return max(r.beam, 1)
}

// found is the result of a search.
type found struct {
	attempt
	noSpeech  float64
	languages map[string]float64 // probabilities, as shares of those asked for; nil if none were
	other     string             // the language to decode in instead; then there is no text
	steps     int                // of the decoder
}

// heard is what the first pass knows about a window: the probabilities of no speech and of
// each language, by code.
type heard struct {
	noSpeech  float64
	languages map[string]float64
}

// token is a decoded token.
type token struct {
	id   int32
	logp float32
}

// spell returns the tokens that write the text; nil where the vocabulary lacks some of its
// characters.
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
