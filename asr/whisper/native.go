//go:build cgo && !windows

package whisper

/*
#cgo LDFLAGS: -ldl -lm
#cgo CFLAGS: -O2 -Wall -Wno-unused-parameter
#include <stdlib.h>
#include "libwhisper.h"
#include "device.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/otograph/otograph/internal/engine/whispernet"
	"github.com/otograph/otograph/internal/system/native"
)

// openLibrary finds and opens libwhisper, once. After a failure the next call
// tries again, so that a library fetched meanwhile is found.
func openLibrary() error {
	library.Lock()
	defer library.Unlock()
	if library.opened {
		return nil
	}
	dir, err := native.Whisper()
	if err != nil {
		return fmt.Errorf("whisper: a device needs libwhisper: %w", err)
	}
	cdir := C.CString(dir)
	defer C.free(unsafe.Pointer(cdir))
	if p := C.og_open(cdir); p != nil {
		where := dir
		if where == "" {
			where = "the system's libraries"
		}
		return fmt.Errorf("whisper: libwhisper in %s cannot be used: %s: %w", where, C.GoString(p), ErrLibrary)
	}
	library.opened = true
	return nil
}

// OpenLibrary opens libwhisper if that has not happened yet and describes it.
// The error wraps native.ErrMissing if it is not installed, ErrLibrary if it
// does not fit.
func OpenLibrary() (Library, error) {
	if err := openLibrary(); err != nil {
		return Library{}, err
	}
	return Library{Version: C.GoString(C.og_version()), System: systemInfo()}, nil
}

func systemInfo() string { return strings.TrimSpace(C.GoString(C.og_system_info())) }

// prepareDevices looks up the functions for devices.
func prepareDevices() error {
	if p := C.og_devices_open(C.og_ggml()); p != nil {
		return errors.New(C.GoString(p))
	}
	return nil
}

// setGuard makes fatal failures of a device an error instead of ending the
// program.
var setGuard = sync.OnceValue(func() error {
	if !C.og_set_guard() {
		return errors.New("the C++ library does not tell about its exceptions")
	}
	return nil
})

// loadPlugin registers the devices of a plug-in.
func loadPlugin(file string) error {
	if err := setGuard(); err != nil {
		return err
	}
	takeWarning()
	cfile := C.CString(file)
	defer C.free(unsafe.Pointer(cfile))
	if !C.og_load_plugin(cfile) {
		return errors.New(lastWarning("it does not load, or finds no device"))
	}
	return nil
}

// listDevices lists the devices in libwhisper's order.
func listDevices() []Device {
	var found [64]C.og_device
	number := map[string]int{}
	var list []Device
	for _, d := range found[:C.og_devices(&found[0], C.int(len(found)))] {
		kind := strings.ToLower(C.GoString(d.backend))
		list = append(list, Device{
			Name: fmt.Sprintf("%s:%d", kind, number[kind]), Description: C.GoString(d.description),
			Memory: uint64(d.total), Free: uint64(d.free), Integrated: bool(d.integrated),
		})
		number[kind]++
	}
	return list
}

// nativeLog forwards the process-wide log of libwhisper and ggml, as debug
// records, to the logger of the engine opened last. The last warning or error
// is kept for the error of a model that does not load.
var nativeLog struct {
	logger atomic.Pointer[slog.Logger]
	sync.Mutex
	part, warning string
}

func setNativeLogger(l *slog.Logger) {
	nativeLog.logger.Store(l)
	C.og_want_log(C.bool(l.Enabled(context.Background(), slog.LevelDebug)))
}

// takeWarning returns the last warning or error of the library and forgets
// it.
func takeWarning() string {
	nativeLog.Lock()
	defer nativeLog.Unlock()
	c := nativeLog.warning
	nativeLog.warning = ""
	return c
}

// lastWarning returns takeWarning, or otherwise if that is empty.
func lastWarning(otherwise string) string {
	if c := takeWarning(); c != "" {
		return c
	}
	return otherwise
}

//export ogNativeLog
func ogNativeLog(level C.int, text *C.char) {
	const warn, cont = 3, 5
	nativeLog.Lock()
	nativeLog.part += C.GoString(text)
	line, rest, whole := strings.Cut(nativeLog.part, "\n")
	if !whole {
		nativeLog.Unlock()
		return
	}
	nativeLog.part = rest
	if line = strings.TrimSpace(line); line != "" && level >= warn && level < cont {
		nativeLog.warning = line
	}
	nativeLog.Unlock()
	if l := nativeLog.logger.Load(); l != nil && line != "" {
		l.Debug(line, "from", "libwhisper")
	}
}

// weights is a loaded model (a whisper_context without a state).
type weights struct {
	c    *C.og_context
	at   place
	lost bool // the device failed: none of it may be used or freed
}

func loadWeights(m modelFile, at place) (*weights, error) {
	if at != onCPU {
		if err := setGuard(); err != nil {
			return nil, err
		}
	}
	takeWarning()
	var c *C.og_context
	if m.Data != nil {
		c = C.og_load_memory(unsafe.Pointer(&m.Data[0]), C.size_t(len(m.Data)), C.int(at.number))
	} else {
		path := C.CString(m.Path)
		defer C.free(unsafe.Pointer(path))
		c = C.og_load_file(path, C.int(at.number))
	}
	if c == nil {
		return nil, errors.New(lastWarning("libwhisper reported no reason"))
	}
	return &weights{c: c, at: at}, nil
}

// failure returns the error of a failed native call. If a device failed, it is
// the device's error, and the weights are lost; otherwise it is err.
func (w *weights) failure(rc int, err error) error {
	switch {
	case w.at != onCPU && rc == C.OG_GAVE_UP:
		err = errors.New(lastWarning("its driver reported no reason"))
		fallthrough
	case w.at != onCPU:
		w.lost = true
		return fmt.Errorf("%w: %w", ErrDevice, err)
	}
	return err
}

func (w *weights) free() {
	if !w.lost {
		C.og_free(w.c)
	}
}

func (w *weights) ends() (eot, begin int32) { return int32(C.og_eot(w.c)), int32(C.og_beg(w.c)) }

// Text returns the bytes of a token, which need not be whole characters.
func (w *weights) Text(token int32) string {
	return C.GoString(C.og_token_text(w.c, C.int32_t(token)))
}

// Tokenize splits text into tokens; characters missing from the vocabulary are
// left out.
func (w *weights) Tokenize(text string) []int32 {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	tokens := make([]int32, len(text)+1)
	n := C.og_tokenize(w.c, c, (*C.int32_t)(unsafe.Pointer(&tokens[0])), C.int(len(tokens)))
	if n < 0 {
		return nil
	}
	return tokens[:n]
}

// newState returns a decoding state. Its buffers need 100 to 200 MB of address
// space with published models.
func (w *weights) newState() (*state, error) {
	s := C.og_new_state(w.c)
	if s == nil {
		return nil, w.failure(0, errors.New("whisper: out of memory for a decoding state"))
	}
	return &state{w: w, s: s}, nil
}

// state is a whisper_state; one decode at a time may use it.
type state struct {
	w *weights
	s *C.og_state
}

func (s *state) free() {
	if !s.w.lost {
		C.og_free_state(s.s)
	}
}

// call is the memory a decode shares with its native callbacks.
type call struct{ j *C.og_job }

// newCall allocates the memory of one or more decodes; free releases it.
func (w *weights) newCall() (*call, error) {
	j := C.og_new_job(w.c)
	if j == nil {
		return nil, errors.New("whisper: out of memory for a decode")
	}
	return &call{j}, nil
}

func (j *call) abort() { C.og_abort_job(j.j) }
func (j *call) free()  { C.og_free_job(j.j) }

// work returns the encoder passes and decoder steps of a call's decodes so far.
func (j *call) work() (encodes, steps int) {
	var e, s C.int
	C.og_work(j.j, &e, &s)
	return int(e), max(int(s), 0)
}

// decode runs one window with width beams or samples and returns its tokens,
// including time marks.
func (s *state) decode(j *call, r *request, width int, samples []float32) ([]token, error) {
	lang := C.CString(r.language)
	defer C.free(unsafe.Pointer(lang))
	creq := (*C.og_request)(C.calloc(1, C.size_t(unsafe.Sizeof(C.og_request{}))))
	defer C.free(unsafe.Pointer(creq))
	creq.language = lang
	if len(r.prompt) > 0 {
		p := C.malloc(C.size_t(4 * len(r.prompt)))
		defer C.free(p)
		copy(unsafe.Slice((*int32)(p), len(r.prompt)), r.prompt)
		creq.prompt, creq.n_prompt = (*C.int32_t)(p), C.int(len(r.prompt))
	}
	creq.threads, creq.beam, creq.best_of = 1, 1, C.int(width)
	if r.temperature == 0 {
		creq.beam, creq.best_of = C.int(width), 1
	}
	creq.temperature, creq.translate, creq.most = C.float(r.temperature), C.bool(r.translate), C.int(r.most)
	rc := C.og_decode(s.w.c, s.s, j.j, creq, (*C.float)(unsafe.Pointer(&samples[0])), C.int(len(samples)))
	if C.og_aborted(j.j) && rc != C.OG_GAVE_UP {
		return nil, errAborted
	}
	if rc != 0 {
		return nil, s.w.failure(int(rc), fmt.Errorf("whisper: libwhisper failed to decode a window of %.1f s (code %d): %w", float64(len(samples))/16000, int(rc), ErrDecode))
	}
	n := int(C.og_count_tokens(s.s))
	if n == 0 {
		return nil, nil
	}
	raw := make([]C.og_token_data, n)
	C.og_copy_tokens(s.s, &raw[0])
	tokens := make([]token, n)
	for i, t := range raw {
		tokens[i] = token{id: int32(t.id), logp: float32(t.plog)}
	}
	return tokens, nil
}

// first returns the logits after "start of transcript" on the window decoded
// last. It costs one decoder step.
func (s *state) first(threads int) ([]float32, error) {
	var logits *C.float
	if rc := C.og_first(s.w.c, s.s, C.int(threads), &logits); rc != 0 {
		return nil, s.w.failure(int(rc), fmt.Errorf("whisper: libwhisper failed to compute the no-speech probability: %w", ErrDecode))
	}
	return slices.Clone(unsafe.Slice((*float32)(logits), int(C.og_vocabulary(s.w.c)))), nil
}

// noSpeech returns the probability that the window decoded last holds no
// speech.
func (s *state) noSpeech(threads int) (float64, error) {
	logits, err := s.first(threads)
	if err != nil {
		return 0, err
	}
	_, begin := s.w.ends()
	whispernet.Normalize(logits, begin)
	return math.Exp(float64(logits[C.og_nosp(s.w.c)])), nil
}

// detect returns the probability of every language for at most 30 s of sound.
func (s *state) detect(samples []float32, threads int) (map[string]float64, error) {
	probabilities := make([]float32, int(C.og_languages()))
	rc := C.og_detect(s.w.c, s.s, (*C.float)(unsafe.Pointer(&samples[0])), C.int(len(samples)), C.int(threads),
		(*C.float)(unsafe.Pointer(&probabilities[0])))
	if rc < 0 {
		return nil, s.w.failure(int(rc), fmt.Errorf("whisper: libwhisper failed to detect the language (code %d): %w", int(rc), ErrDecode))
	}
	m := make(map[string]float64, len(probabilities))
	for i, p := range probabilities {
		if p > 0 {
			m[C.GoString(C.og_language(C.int(i)))] = float64(p)
		}
	}
	return m, nil
}
