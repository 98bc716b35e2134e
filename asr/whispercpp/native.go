//go:build cgo && !windows

package whispercpp

/*
#cgo LDFLAGS: -ldl
#cgo CFLAGS: -O2 -Wall -Wno-unused-parameter
#include <stdlib.h>
#include "libwhisper.h"
#include "device.h"
*/
import "C"

import (
	"cmp"
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

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/asr/whisper"
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
		return fmt.Errorf("whispercpp: a device needs libwhisper: %w", err)
	}
	cdir := C.CString(dir)
	defer C.free(unsafe.Pointer(cdir))
	if p := C.og_open(cdir); p != nil {
		return fmt.Errorf("whispercpp: libwhisper in %s cannot be used: %s: %w", cmp.Or(dir, "the system's libraries"), C.GoString(p), errLibrary)
	}
	library.opened = true
	return nil
}

// OpenLibrary opens libwhisper once and returns its version, such as
// "1.9.5-dev". The error says whether it is missing or does not fit.
func OpenLibrary() (version string, err error) {
	if err := openLibrary(); err != nil {
		return "", err
	}
	return C.GoString(C.og_version()), nil
}

// prepareDevices looks up the functions for devices.
func prepareDevices() error {
	if p := C.og_devices_open(C.og_ggml()); p != nil {
		return errors.New(C.GoString(p))
	}
	return nil
}

// setGuard makes fatal failures of a device errors.
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
// is stored for the error of a model that does not load.
var nativeLog struct {
	logger atomic.Pointer[slog.Logger]
	sync.Mutex
	part, warning string
}

func setNativeLogger(l *slog.Logger) {
	nativeLog.logger.Store(l)
	C.og_want_log(C.bool(l.Enabled(context.Background(), slog.LevelDebug)))
}

// takeWarning returns and forgets the library's last warning or error.
func takeWarning() string {
	nativeLog.Lock()
	defer nativeLog.Unlock()
	c := nativeLog.warning
	nativeLog.warning = ""
	return c
}

// lastWarning returns takeWarning, or otherwise if that is empty.
func lastWarning(otherwise string) string { return cmp.Or(takeWarning(), otherwise) }

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
	c      *C.og_context
	device int  // negative for the CPU, in tests
	lost   bool // the device failed: the model may be neither used nor freed
}

// loadWeights loads a checked file onto a device.
func loadWeights(f *whispernet.File, device int) (*weights, error) {
	if device >= 0 {
		if err := setGuard(); err != nil {
			return nil, err
		}
	}
	takeWarning()
	var c *C.og_context
	if f.Data != nil {
		c = C.og_load_memory(unsafe.Pointer(&f.Data[0]), C.size_t(len(f.Data)), C.int(device))
	} else {
		path := C.CString(f.Path())
		defer C.free(unsafe.Pointer(path))
		c = C.og_load_file(path, C.int(device))
	}
	if c == nil {
		return nil, errors.New(lastWarning("libwhisper reported no reason"))
	}
	return &weights{c: c, device: device}, nil
}

// failure returns the error of a failed native call. If a device failed, it is
// the device's error, and the weights are lost; otherwise it is err.
func (w *weights) failure(rc int, err error) error {
	if w.device < 0 {
		return err
	}
	if rc == C.OG_GAVE_UP {
		err = errors.New(lastWarning("its driver reported no reason"))
	}
	w.lost = true
	return fmt.Errorf("%w: %w", errDevice, err)
}

func (w *weights) free() {
	if !w.lost {
		C.og_free(w.c)
	}
}

// ends returns the first token that is not text, and the time mark of 0.00 s;
// each further token is 0.02 s later.
func (w *weights) ends() (eot, begin int32) { return int32(C.og_eot(w.c)), int32(C.og_beg(w.c)) }

// text returns the bytes of a token, which need not be whole characters.
func (w *weights) text(token int32) string { return C.GoString(C.og_token_text(w.c, C.int32_t(token))) }

// state is a whisper_state; one decode at a time may use it. Its buffers need
// 100 to 200 MB of address space with published models.
type state struct {
	w *weights
	s *C.og_state
}

func (w *weights) newState() (*state, error) {
	s := C.og_new_state(w.c)
	if s == nil {
		return nil, w.failure(0, fmt.Errorf("out of memory for a decoding state: %w", whisper.ErrDecode))
	}
	return &state{w: w, s: s}, nil
}

func (s *state) free() {
	if !s.w.lost {
		C.og_free_state(s.s)
	}
}

// decode runs libwhisper's search on a window and returns its tokens, with time
// marks, and the work done. It stops soon after ctx ends.
func (s *state) decode(ctx context.Context, r request, samples []float32) (tokens []token, work asr.Stats, err error) {
	j := C.og_new_job()
	if j == nil {
		return nil, work, fmt.Errorf("out of memory for a decode: %w", whisper.ErrDecode)
	}
	defer C.og_free_job(j)
	aborted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		C.og_abort_job(j)
		close(aborted)
	})
	defer func() {
		if !stop() {
			<-aborted // before the job is freed
		}
	}()
	creq := (*C.og_request)(C.calloc(1, C.size_t(unsafe.Sizeof(C.og_request{}))))
	defer C.free(unsafe.Pointer(creq))
	creq.language = C.CString(r.language)
	defer C.free(unsafe.Pointer(creq.language))
	if r.prompt != "" {
		creq.prompt = C.CString(r.prompt)
		defer C.free(unsafe.Pointer(creq.prompt))
	}
	creq.threads, creq.beam, creq.best_of = 1, C.int(r.beam), C.int(r.samples)
	creq.temperature, creq.translate = C.float(r.temperature), C.bool(r.translate)
	rc := C.og_decode(s.w.c, s.s, j, creq, (*C.float)(unsafe.Pointer(&samples[0])), C.int(len(samples)))
	if ctx.Err() != nil && rc != C.OG_GAVE_UP {
		return nil, work, context.Cause(ctx)
	}
	if rc != 0 {
		return nil, work, s.w.failure(int(rc), fmt.Errorf("libwhisper failed to decode a window of %.1f s (code %d): %w", float64(len(samples))/16000, int(rc), whisper.ErrDecode))
	}
	var encodes, steps C.int
	C.og_work(j, &encodes, &steps)
	work = asr.Stats{EncoderPasses: int(encodes), DecoderSteps: max(int(steps), 0)}
	raw := make([]C.og_token_data, int(C.og_count_tokens(s.s))+1)
	C.og_copy_tokens(s.s, &raw[0])
	for _, t := range raw[:len(raw)-1] {
		tokens = append(tokens, token{id: int32(t.id), logp: float64(t.plog)})
	}
	return tokens, work, nil
}

// first returns the log probabilities after "start of transcript" on the window
// decoded or detected last. It costs one decoder step.
func (s *state) first() ([]float32, error) {
	var logits *C.float
	if rc := C.og_first(s.w.c, s.s, 1, &logits); rc != 0 {
		return nil, s.w.failure(int(rc), fmt.Errorf("libwhisper failed to compute the no-speech probability: %w", whisper.ErrDecode))
	}
	list := slices.Clone(unsafe.Slice((*float32)(logits), int(C.og_vocabulary(s.w.c))))
	_, begin := s.w.ends()
	whispernet.Normalize(list, begin)
	return list, nil
}

// noSpeech returns the last window's probability of holding no speech.
func (s *state) noSpeech() (float64, error) {
	list, err := s.first()
	if err != nil {
		return 0, err
	}
	return math.Exp(float64(list[C.og_nosp(s.w.c)])), nil
}

// detect returns the probability of every language for at most 30 s of sound.
func (s *state) detect(samples []float32) (map[string]float64, error) {
	probabilities := make([]float32, int(C.og_languages()))
	rc := C.og_detect(s.w.c, s.s, (*C.float)(unsafe.Pointer(&samples[0])), C.int(len(samples)), 1, (*C.float)(unsafe.Pointer(&probabilities[0])))
	if rc < 0 {
		return nil, s.w.failure(int(rc), fmt.Errorf("libwhisper failed to detect the language (code %d): %w", int(rc), whisper.ErrDecode))
	}
	m := make(map[string]float64, len(probabilities))
	for i, p := range probabilities {
		m[C.GoString(C.og_language(C.int(i)))] = float64(p)
	}
	return m, nil
}
