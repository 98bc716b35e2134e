//go:build crosscheck

package crosscheck

/*
#cgo LDFLAGS: -lwhisper -lggml -lggml-base
#include <stdlib.h>
#include <ggml-backend.h>
#include <whisper.h>

static void quiet(enum ggml_log_level level, const char *text, void *user) { (void)level, (void)text, (void)user; }
static void silence(void) { whisper_log_set(quiet, NULL); }
*/
import "C"

import (
	"errors"
	"path/filepath"
	"strings"
	"unsafe"

	upstream "github.com/ggerganov/whisper.cpp/bindings/go"
)

// bindings is a model opened through the published bindings.
type bindings struct{ ctx *upstream.Context }

// openBindings loads ggml's plug-ins, which the bindings do not do, and the model.
func openBindings(dir, model string) (*bindings, error) {
	C.silence()
	path := C.CString(filepath.Join(dir, "ggml"))
	defer C.free(unsafe.Pointer(path))
	C.ggml_backend_load_all_from_path(path)
	ctx := upstream.Whisper_init(model)
	if ctx == nil {
		return nil, errors.New("crosscheck: the bindings cannot open the model")
	}
	return &bindings{ctx}, nil
}

func (b *bindings) close() { b.ctx.Whisper_free() }

// transcribe runs whisper_full over the whole sound: greedy, one thread, and
// otherwise the library's defaults.
func (b *bindings) transcribe(samples []float32, language string) (string, error) {
	p := b.ctx.Whisper_full_default_params(upstream.SAMPLING_GREEDY)
	p.SetThreads(1)
	p.SetNoContext(true)
	p.SetPrintProgress(false)
	if err := p.SetLanguage(b.ctx.Whisper_lang_id(language)); err != nil {
		return "", err
	}
	if err := b.ctx.Whisper_full(p, samples, nil, nil, nil); err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range b.ctx.Whisper_full_n_segments() {
		text.WriteString(b.ctx.Whisper_full_get_segment_text(i))
	}
	return strings.TrimSpace(text.String()), nil
}
