package whisper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/spec"
)

// EnvKernels is the environment variable that selects the CPU's instruction
// set: "avx512", "avxvnni", "avx2", "neon" or "generic". The default is the
// best one that the CPU supports.
const EnvKernels = "OTOGRAPH_KERNELS"

// Kernels returns the name of the CPU's instruction set for models.
func Kernels() (string, error) {
	name, err := whispernet.Kernels(os.Getenv(EnvKernels))
	if err != nil {
		return "", fmt.Errorf("%s: %w", EnvKernels, err)
	}
	return name, nil
}

// cpu is a model of internal/engine/whispernet with its windows' state.
type cpu struct {
	*whispernet.Vocabulary
	model   *whispernet.Model
	rules   *rules
	threads int      // for language detection
	context int      // the decoder's capacity in tokens
	size    int      // the number of tokens in the vocabulary
	spoken  bool     // the prompt names the language and the task
	thin    bool     // the encoder may compute few positions of silence
	heads   [][2]int // alignment heads

	mu     sync.Mutex
	stored []storedWindow
	timer  *time.Timer
}

// storedWindow is an encoded window for later; it holds no recording.
type storedWindow struct {
	pcm    weak.Pointer[audio.PCM]
	pieces []audio.Span
	rows   int // as in job
	window *whispernet.Window
	since  time.Time
}

// An engine stores the mostStored last encoded windows for storeFor, so that
// transcription reuses the windows of language detection.
const (
	mostStored = 6
	storeFor   = time.Minute
)

// thinLayers is the most layers of an encoder that computes few positions of
// silence: Whisper base has 6, larger models were not measured. Sounds of
// thinSeconds or more leave too little silence. A window's text whose mean log
// probability is below thinLogProb is decoded again with all silence; the text of
// a repair is not: a call would take a fifth longer (docs/measurements/live.md).
const (
	thinLayers  = 6
	thinSeconds = 15
	thinLogProb = -0.5
)

// openingSeconds is the length of such a model's first window, if it has many.
const openingSeconds = 10

// failure converts an error of the network: a lack of memory becomes ErrDecode.
func failure(err error) error {
	if errors.Is(err, whispernet.ErrMemory) {
		return fmt.Errorf("%w: %w", ErrDecode, err)
	}
	return err
}

// openCPU loads a model, with the alignment heads that time words, if any.
func openCPU(f *whispernet.File, alignment [][2]int, thin bool, threads int) (*cpu, error) {
	model, err := whispernet.Open(f.Checked, whispernet.Options{Kernels: os.Getenv(EnvKernels), Threads: threads, Thin: thin})
	if err != nil {
		return nil, err
	}
	v, h := model.Vocabulary(), model.Header()
	heads, err := alignmentHeads(alignment, h)
	if err != nil {
		model.Close()
		return nil, err
	}
	return &cpu{
		Vocabulary: v, model: model, rules: newRules(model, heads != nil), threads: max(threads, 1),
		context: int(h.TextContext), size: int(v.Size), spoken: h.Multilingual(), thin: thin, heads: heads,
	}, nil
}

// unmarked reports whether a model was trained without time marks. Like
// whisper.cpp, it knows the first distilled models by their two decoder layers.
func unmarked(h ggmlfile.Header) bool {
	return h.TextLayers == 2 && h.Vocabulary < 51866 && h.AudioLayers > 2
}

func (c *cpu) ends() (eot, begin int32) { return c.EOT, c.Begin }

func (c *cpu) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freeIf(func(storedWindow) bool { return true })
	if c.timer != nil {
		c.timer.Stop()
	}
	c.model.Close()
}

// encoded returns the encoded window of a job: a stored one, or a new one. The
// window of a brief job is never stored.
func (c *cpu) encoded(j *job, threads int, stop *whispernet.Stop) (*whispernet.Window, error) {
	if j.brief {
		w, err := c.model.EncodeBriefly(j.samples(), threads, stop)
		return w, j.failure(err)
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.stored, func(k storedWindow) bool {
		return !j.whole && k.pcm == weak.Make(j.pcm) && k.rows >= j.rows && slices.Equal(k.pieces, j.window.Pieces)
	})
	if i >= 0 {
		w := c.stored[i].window
		c.stored = slices.Delete(c.stored, i, i+1)
		c.mu.Unlock()
		return w, nil
	}
	c.mu.Unlock()
	encode := c.model.EncodeWhole
	if c.thins(j) {
		encode = c.model.Encode
	}
	w, err := encode(j.samples(), j.rows, threads, stop)
	return w, j.failure(err)
}

// thins reports whether a part of the silence after a job's sound is computed.
func (c *cpu) thins(j *job) bool {
	return c.thin && !j.whole && j.window.Len() < thinSeconds*audio.SampleRate
}

// failure names the window in an error of its encoding.
func (j *job) failure(err error) error {
	if err != nil {
		err = fmt.Errorf("whisper: a window of %.1f s: %w", float64(j.window.Len())/audio.SampleRate, failure(err))
	}
	return err
}

// store stores the encoded window of a job for a later one.
func (c *cpu) store(j *job, w *whispernet.Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = append(c.stored, storedWindow{weak.Make(j.pcm), j.window.Pieces, j.rows, w, time.Now()})
	if len(c.stored) > max(min(mostStored, mostBytes/c.model.WindowBytes()), 1) {
		c.stored[0].window.Free()
		c.stored = slices.Delete(c.stored, 0, 1)
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(storeFor, c.drop)
	}
}

// forget frees the stored windows that begin inside a window of a recording.
func (c *cpu) forget(pcm *audio.PCM, w decode.Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := w.Pieces[0].Start, w.Pieces[len(w.Pieces)-1].End
	c.freeIf(func(k storedWindow) bool {
		return k.pcm == weak.Make(pcm) && k.pieces[0].Start >= from && k.pieces[0].Start < to
	})
}

// freeIf frees some of the stored windows; c.mu is held.
func (c *cpu) freeIf(some func(storedWindow) bool) {
	c.stored = slices.DeleteFunc(c.stored, func(k storedWindow) bool {
		if !some(k) {
			return false
		}
		k.window.Free()
		return true
	})
}

// drop frees the windows stored for longer than storeFor.
func (c *cpu) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freeIf(func(k storedWindow) bool { return time.Since(k.since) >= storeFor })
	c.timer = nil
	if len(c.stored) > 0 {
		c.timer = time.AfterFunc(time.Until(c.stored[0].since.Add(storeFor)), c.drop)
	}
}

// search starts a search in a window.
func (c *cpu) search(w *whispernet.Window, r *request) *search {
	s := &search{
		rules: c.rules, window: w, names: r.names, silent: c.NoSpeech,
		quiet: r.quiet, temperature: r.temperature, width: r.width(),
		random: rand.New(rand.NewPCG(1, math.Float64bits(r.temperature))), //nolint:gosec // the same text every time
	}
	if len(r.others) > 0 {
		s.listen = func(first []float32) (map[string]float64, string) {
			h := c.afterStart(first)
			h.languages = shares(h.languages, r.others)
			return h.languages, h.otherThan(r.language)
		}
	}
	if len(r.prompt) > 0 {
		s.prompt = append(append(s.prompt, c.Prev), r.prompt...)
	}
	s.sot = len(s.prompt)
	s.prompt = append(s.prompt, c.SOT)
	if c.spoken {
		task := c.Transcribe
		if r.translate {
			task = c.Translate
		}
		s.prompt = append(s.prompt, c.Language(whispernet.LanguageNumber(r.language)), task)
	}
	if c.rules.unmarked {
		s.prompt = append(s.prompt, c.NoTimestamps)
	}
	s.most = min(c.context/2, c.context-len(s.prompt))
	if r.most > 0 {
		s.most = min(s.most, r.most)
	}
	return s
}

// firstPass returns the results of the decoder's first pass over each window.
// Encoded windows are stored for a following transcription, unless brief is
// set: brief windows have too little silence for that.
func (c *cpu) firstPass(ctx context.Context, pcm *audio.PCM, windows []decode.Window, brief bool) ([]firstPass, error) {
	stop := new(whispernet.Stop)
	defer context.AfterFunc(ctx, stop.Now)()
	d := c.model.NewDecoder(c.threads)
	defer d.Free()
	logits := make([]float32, c.size)
	var list []firstPass
	for _, window := range windows {
		j := &job{pcm: pcm, window: window, rows: maxBeams, brief: brief}
		w, err := c.encoded(j, c.threads, stop)
		if err != nil {
			return nil, err
		}
		err = d.Step([]whispernet.Column{{Window: w, Token: c.SOT, Logits: logits}}, stop)
		if err != nil {
			w.Free()
			return nil, failure(err)
		}
		if brief {
			w.Free()
		} else {
			w.Forget()
			c.store(j, w)
		}
		list = append(list, c.afterStart(logits))
	}
	return list, nil
}

// afterStart reads the logits after "start of transcript".
func (c *cpu) afterStart(logits []float32) firstPass {
	h := firstPass{languages: make(map[string]float64)}
	whispernet.Normalize(logits, c.Begin)
	h.noSpeech = math.Exp(float64(logits[c.NoSpeech]))
	var sum float64
	for i, l := range spec.Languages() {
		if t := c.Language(i); t >= 0 {
			p := math.Exp(float64(logits[t]))
			h.languages[l.Code] = p
			sum += p
		}
	}
	for code := range h.languages {
		h.languages[code] /= sum
	}
	return h
}
