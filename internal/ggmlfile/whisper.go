// Package ggmlfile checks a Whisper model in ggml's own format (magic, sizes,
// vocabulary, tensors) by walking the file without loading it, so that a
// damaged or hostile file is refused before native code sees it.
//
// The layout is the one that whisper.cpp reads: magic, eleven int32 hyper
// parameters, the mel filters, the vocabulary, then tensors to the end of the
// file, everything little-endian.
package ggmlfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrNotWhisper marks bytes that are not a Whisper model in ggml's format.
var ErrNotWhisper = errors.New("not a ggml Whisper model")

// Magic is the number a ggml file begins with ("ggml", read little-endian).
const Magic = 0x67676d6c

// Whisper holds the hyper parameters of a Whisper file.
type Whisper struct {
	Vocab       int // tokens, special ones included
	AudioCtx    int // encoder positions (1500 = 30 s)
	AudioState  int // width of the encoder
	AudioHead   int
	AudioLayer  int
	TextCtx     int // decoder positions
	TextState   int // width of the decoder
	TextHead    int
	TextLayer   int
	Mels        int // mel bands, 80 or 128
	FType       int // ggml's number for the type of the weights
	VocabInFile int // tokens whose text the file holds
	Tensors     int
}

// Multilingual tells whether the vocabulary has language tokens: English-only
// models have 51864 tokens (whisper.cpp: n_vocab >= 51865).
func (w *Whisper) Multilingual() bool { return w.Vocab >= 51865 }

// Translates tells whether the model may have learned to translate into English:
// English-only models have not, nor have those whose decoder was cut down to fewer
// layers than the encoder has and then trained without translations (the turbo
// models and the distilled ones).
func (w *Whisper) Translates() bool { return w.Multilingual() && w.TextLayer >= w.AudioLayer }

// The ranges that are accepted. The largest published model (large-v3) has 32
// layers, 1280 wide, 20 heads, 128 bands and 51866 tokens; the ranges leave room
// above it and stop what would make a loader reserve absurd memory.
const (
	maxVocab  = 1 << 18
	maxCtx    = 1 << 14
	maxState  = 1 << 13
	maxHeads  = 1 << 8
	maxLayers = 1 << 8
	maxMels   = 1 << 10
	maxFFT    = 1 << 14
	maxToken  = 1 << 10 // bytes of one token's text
	maxTensor = 1 << 16 // tensors
	maxName   = 1 << 8  // bytes of a tensor's name
)

// block is how a tensor type lies in the file: size bytes for every n numbers.
type block struct{ n, size int64 }

// blocks are ggml's tensor types (ggml.h: enum ggml_type; block sizes from
// ggml-common.h).
var blocks = map[int32]block{
	0:  {1, 4},   // F32
	1:  {1, 2},   // F16
	2:  {32, 18}, // Q4_0
	3:  {32, 20}, // Q4_1
	6:  {32, 22}, // Q5_0
	7:  {32, 24}, // Q5_1
	8:  {32, 34}, // Q8_0
	10: {256, 84},
	11: {256, 110},
	12: {256, 144},
	13: {256, 176},
	14: {256, 210}, // Q6_K
	30: {1, 2},     // BF16
}

// OpenWhisper checks the file at path.
func OpenWhisper(path string) (*Whisper, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrNotWhisper, path)
	}
	return ReadWhisper(f, info.Size())
}

// ParseWhisper checks a model in memory.
func ParseWhisper(data []byte) (*Whisper, error) {
	return ReadWhisper(bytes.NewReader(data), int64(len(data)))
}

// ReadWhisper checks a model of size bytes: hyper parameters in range, mel
// filters, vocabulary and every tensor within the file, and nothing after the
// last. An error wraps ErrNotWhisper unless reading itself failed.
func ReadWhisper(r io.ReaderAt, size int64) (*Whisper, error) {
	w := &reader{r: r, size: size}
	if magic := uint32(w.int32()); w.err == nil && magic != Magic {
		return nil, fmt.Errorf("%w: it begins with %#08x, expected %#08x", ErrNotWhisper, magic, uint32(Magic))
	}
	h := &Whisper{}
	for _, p := range []struct {
		name string
		into *int
		min  int
		max  int
	}{
		{"n_vocab", &h.Vocab, 1, maxVocab},
		{"n_audio_ctx", &h.AudioCtx, 1, maxCtx},
		{"n_audio_state", &h.AudioState, 1, maxState},
		{"n_audio_head", &h.AudioHead, 1, maxHeads},
		{"n_audio_layer", &h.AudioLayer, 1, maxLayers},
		{"n_text_ctx", &h.TextCtx, 1, maxCtx},
		{"n_text_state", &h.TextState, 1, maxState},
		{"n_text_head", &h.TextHead, 1, maxHeads},
		{"n_text_layer", &h.TextLayer, 1, maxLayers},
		{"n_mels", &h.Mels, 1, maxMels},
		{"ftype", &h.FType, 0, 1 << 20},
	} {
		*p.into = int(w.int32())
		if w.err == nil && (*p.into < p.min || *p.into > p.max) {
			return nil, fmt.Errorf("%w: %s is %d, expected %d to %d", ErrNotWhisper, p.name, *p.into, p.min, p.max)
		}
	}
	if w.err == nil && (h.AudioState%h.AudioHead != 0 || h.TextState%h.TextHead != 0) {
		return nil, fmt.Errorf("%w: widths %d and %d are not multiples of the heads %d and %d",
			ErrNotWhisper, h.AudioState, h.TextState, h.AudioHead, h.TextHead)
	}

	mels, fft := int64(w.int32()), int64(w.int32())
	if w.err == nil && (mels != int64(h.Mels) || fft < 1 || fft > maxFFT) {
		return nil, fmt.Errorf("%w: mel filters of %d by %d, expected %d bands and at most %d bins", ErrNotWhisper, mels, fft, h.Mels, maxFFT)
	}
	w.skip(mels * fft * 4)

	h.VocabInFile = int(w.int32())
	if w.err == nil && (h.VocabInFile < 0 || h.VocabInFile > h.Vocab) {
		return nil, fmt.Errorf("%w: %d tokens in the file, n_vocab is %d", ErrNotWhisper, h.VocabInFile, h.Vocab)
	}
	for i := 0; i < h.VocabInFile && w.err == nil; i++ {
		length := w.int32()
		if w.err == nil && (length < 0 || length > maxToken) {
			return nil, fmt.Errorf("%w: token %d has %d bytes (at most %d)", ErrNotWhisper, i, length, maxToken)
		}
		w.skip(int64(length))
	}
	for w.err == nil && w.pos < size {
		if err := w.tensor(h); err != nil {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	if h.Tensors == 0 {
		return nil, fmt.Errorf("%w: it holds no weights", ErrNotWhisper)
	}
	return h, nil
}

// tensor steps over one tensor.
func (w *reader) tensor(h *Whisper) error {
	at := w.pos
	dims, length, kind := w.int32(), w.int32(), w.int32()
	if w.err != nil {
		return w.err
	}
	if dims < 1 || dims > 4 || length < 1 || length > maxName {
		return fmt.Errorf("%w: the tensor at byte %d has %d dimensions and a name of %d bytes", ErrNotWhisper, at, dims, length)
	}
	b, ok := blocks[kind]
	if !ok {
		return fmt.Errorf("%w: the tensor at byte %d has the unknown type %d", ErrNotWhisper, at, kind)
	}
	count := int64(1)
	for range dims {
		d := int64(w.int32())
		if w.err != nil {
			return w.err
		}
		if d < 1 || d > w.size || count > w.size*256/d {
			return fmt.Errorf("%w: the tensor at byte %d is larger than the file", ErrNotWhisper, at)
		}
		count *= d
	}
	if count%b.n != 0 {
		return fmt.Errorf("%w: the tensor at byte %d has %d numbers, not a multiple of %d", ErrNotWhisper, at, count, b.n)
	}
	w.skip(int64(length))
	w.skip(count / b.n * b.size)
	if h.Tensors++; h.Tensors > maxTensor {
		return fmt.Errorf("%w: more than %d tensors", ErrNotWhisper, maxTensor)
	}
	return w.err
}

// reader reads numbers in order and steps over the rest; the first error stays.
type reader struct {
	r    io.ReaderAt
	size int64
	pos  int64
	err  error

	buf  *bufio.Reader
	next int64 // offset that buf reads next
}

func (w *reader) int32() int32 {
	if w.err != nil {
		return 0
	}
	if w.size-w.pos < 4 {
		w.err = fmt.Errorf("%w: it ends at byte %d", ErrNotWhisper, w.size)
		return 0
	}
	if w.buf == nil || w.pos < w.next || w.pos-w.next > 4096 {
		section := io.NewSectionReader(w.r, w.pos, w.size-w.pos)
		if w.buf == nil {
			w.buf = bufio.NewReaderSize(section, 4096)
		} else {
			w.buf.Reset(section)
		}
	} else if _, err := w.buf.Discard(int(w.pos - w.next)); err != nil {
		w.err = err
		return 0
	}
	var b [4]byte
	if _, err := io.ReadFull(w.buf, b[:]); err != nil {
		w.err = err
		return 0
	}
	w.pos += 4
	w.next = w.pos
	return int32(binary.LittleEndian.Uint32(b[:]))
}

func (w *reader) skip(n int64) {
	if w.err != nil {
		return
	}
	if n < 0 || n > w.size-w.pos {
		w.err = fmt.Errorf("%w: it is cut: %d bytes expected at byte %d, found %d", ErrNotWhisper, n, w.pos, w.size-w.pos)
		return
	}
	w.pos += n
}
