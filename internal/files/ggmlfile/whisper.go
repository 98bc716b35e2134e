// Package ggmlfile validates a Whisper model in ggml's format (magic, sizes,
// vocabulary, tensors) by walking the file without loading it, so that a
// damaged or hostile file is refused before native code sees it.
//
// The layout follows whisper.cpp: magic, eleven int32 hyperparameters, mel
// filters, vocabulary, then tensors to the file's end, all little-endian.
package ggmlfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/otograph/otograph/internal/files/weightfile"
)

// ErrNotWhisper marks data that is not a Whisper model in ggml's format.
var ErrNotWhisper = errors.New("not a usable Whisper model")

// Magic is the first number of a ggml file ("ggml", read little-endian).
const Magic = 0x67676d6c

// Header is a Whisper file's beginning: the network's dimensions in order.
type Header struct {
	Vocabulary   int32 // tokens: 51864 English only, 51865 multilingual, 51866 large-v3
	AudioContext int32 // encoder positions (1500 = 30 s)
	AudioState   int32 // width of the encoder
	AudioHeads   int32
	AudioLayers  int32
	TextContext  int32 // decoder positions
	TextState    int32 // width of the decoder
	TextHeads    int32
	TextLayers   int32
	Mels         int32 // mel bands, 80 or 128
	Type         int32 // ggml's number for the type of the weights, + 1000 times the quantization's version
}

// Multilingual reports whether the vocabulary has language tokens, by the rule
// of whisper.cpp: English-only models have 51864 tokens.
func (h Header) Multilingual() bool { return h.Vocabulary >= 51865 }

// Translates reports whether the model may have been trained to translate into
// English. English-only models have not. Neither have the turbo and the
// distilled models, whose decoder was cut to fewer layers than the encoder and
// then trained without translations.
func (h Header) Translates() bool { return h.Multilingual() && h.TextLayers >= h.AudioLayers }

// Checked is a Whisper file that Check accepted, and its contents. Its reader
// reads the file that was checked.
type Checked struct {
	Header
	io.ReaderAt
	// Filters is the offset of the mel filters: Mels rows of FilterBins.
	Filters    int64
	FilterBins int32
	// Texts are the bytes of the first tokens, maybe partial characters.
	Texts []string
	// Index lists the tensors in the file's order.
	Index []Tensor
}

// Tensor is a tensor's location in a file.
type Tensor struct {
	Name string
	// Kind is ggml's number of the type of the weights.
	Kind int32
	// Dims are the dimensions, the innermost first.
	Dims []int32
	// Offset and Size are the place of the weights, in bytes.
	Offset, Size int64
}

// Layout lists a caller's requirements for a valid file.
type Layout struct {
	Bins    int32    // of the mel filters
	Tensors []Tensor // names and dimensions; each must occur once
}

// The accepted ranges. The largest published model (large-v3) has 32 layers,
// 1280 wide, 20 heads, 128 bands and 51866 tokens. The ranges leave room above
// it, and stop sizes for which a loader would reserve absurd amounts of memory.
const (
	maxVocab  = 1 << 18
	maxCtx    = 1 << 14
	maxState  = 1 << 13
	maxHeads  = 1 << 8
	maxLayers = 1 << 8
	maxMels   = 1 << 10
	maxType   = 1 << 20
	maxFFT    = 1 << 14
	maxToken  = 1 << 10 // bytes of one token's text
	maxTensor = 1 << 16 // tensors
	maxName   = 1 << 7  // bytes of a tensor's name
)

// block is a tensor type's layout: size bytes for every n numbers.
type block struct{ n, size int64 }

// blocks are ggml's tensor types that libwhisper loads (ggml.h: enum ggml_type;
// block sizes from ggml-common.h).
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
}

// BlockSize returns the number of values in a block of a tensor type; 0 for
// types that libwhisper does not load.
func BlockSize(kind int32) int64 { return blocks[kind].n }

// Check reads a model of size bytes: dimensions in range, mel filters,
// vocabulary and every tensor within the file, and nothing after the last one.
// It does not read the weights. If demand is not nil, it returns the header's
// required layout, or why there can be none. Check's errors name the expected
// and the actual value; they wrap ErrNotWhisper unless reading or demand failed.
func Check(file io.ReaderAt, size int64, demand func(Header) (Layout, error)) (*Checked, error) {
	r := reader{weightfile.NewReader(file, size, readAhead)}
	if size < 4 {
		return nil, fmt.Errorf("%w: expected ggml's format, found a file of %d bytes", ErrNotWhisper, size)
	}
	if magic := r.word(); r.Err == nil && magic != Magic {
		begin := string(binary.LittleEndian.AppendUint32(nil, uint32(magic)))
		return nil, fmt.Errorf("%w: expected ggml's format (first bytes %q, %#x), found %q%s", ErrNotWhisper, "lmgg", Magic, begin, otherFormat(begin))
	}
	w := Checked{ReaderAt: file}
	header := r.Bytes(int64(binary.Size(w.Header)))
	if r.Err != nil {
		return nil, r.failure("header")
	}
	if _, err := binary.Decode(header, binary.LittleEndian, &w.Header); err != nil {
		return nil, err
	}
	var layout *Layout
	if demand != nil {
		l, err := demand(w.Header)
		if err != nil {
			return nil, err
		}
		layout = &l
	}
	if err := w.sound(); err != nil {
		return nil, err
	}
	if err := w.vocabulary(r, layout); err != nil {
		return nil, err
	}
	if err := w.tensors(r, layout); err != nil {
		return nil, err
	}
	return &w, nil
}

// otherFormat explains the first four bytes of other formats that users try.
func otherFormat(begin string) string {
	switch begin {
	case "GGUF":
		return ", which is GGUF (language models): convert the original to ggml"
	case "PK\x03\x04":
		return ", which is a PyTorch or zip file: convert it to ggml"
	case "\xfd7zX", "(\xb5/\xfd", "\x1f\x8b\x08\x00":
		return ", which is compressed: unpack it"
	case "vers":
		return ", which is a pointer of Git LFS: fetch the file itself"
	}
	return ""
}

// sound checks that a loader can reserve memory for the header's sizes.
func (h Header) sound() error {
	for _, p := range []struct {
		name            string
		value, min, max int32
	}{
		{"n_vocab", h.Vocabulary, 1, maxVocab},
		{"n_audio_ctx", h.AudioContext, 1, maxCtx},
		{"n_audio_state", h.AudioState, 1, maxState},
		{"n_audio_head", h.AudioHeads, 1, maxHeads},
		{"n_audio_layer", h.AudioLayers, 1, maxLayers},
		{"n_text_ctx", h.TextContext, 1, maxCtx},
		{"n_text_state", h.TextState, 1, maxState},
		{"n_text_head", h.TextHeads, 1, maxHeads},
		{"n_text_layer", h.TextLayers, 1, maxLayers},
		{"n_mels", h.Mels, 1, maxMels},
		{"ftype", h.Type, 0, maxType},
	} {
		if p.value < p.min || p.value > p.max {
			return fmt.Errorf("%w: header: expected %s of %d to %d, found %d", ErrNotWhisper, p.name, p.min, p.max, p.value)
		}
	}
	if h.AudioState%h.AudioHeads != 0 || h.TextState%h.TextHeads != 0 {
		return fmt.Errorf("%w: header: expected widths that are multiples of the heads' number, found %d for %d and %d for %d",
			ErrNotWhisper, h.AudioState, h.AudioHeads, h.TextState, h.TextHeads)
	}
	return nil
}

// vocabulary skips the mel filters and the vocabulary.
func (w *Checked) vocabulary(r reader, layout *Layout) error {
	mels, bins := r.word(), r.word()
	least, most := int32(1), int32(maxFFT)
	if layout != nil {
		least, most = layout.Bins, layout.Bins
	}
	if r.Err == nil && (mels != w.Mels || bins < least || bins > most) {
		return fmt.Errorf("%w: mel filters: expected %d bands of %d bins, found %d of %d", ErrNotWhisper, w.Mels, most, mels, bins)
	}
	w.Filters, w.FilterBins = r.At, bins
	r.Skip(4 * int64(mels) * int64(bins))
	n := r.word()
	if r.Err == nil && (n < 1 || n > w.Vocabulary) {
		return fmt.Errorf("%w: vocabulary: expected 1 to %d tokens, found %d; n_vocab is %d", ErrNotWhisper, w.Vocabulary, n, w.Vocabulary)
	}
	for i := int32(0); i < n && r.Err == nil; i++ {
		length := r.word()
		if r.Err == nil && (length < 0 || length > maxToken) {
			return fmt.Errorf("%w: vocabulary: expected a token of at most %d bytes at number %d, found %d", ErrNotWhisper, maxToken, i, length)
		}
		w.Texts = append(w.Texts, string(r.Bytes(int64(length))))
	}
	return r.failure("mel filters and vocabulary")
}

// tensors skips the tensors to the end of the file.
func (w *Checked) tensors(r reader, layout *Layout) error {
	missing := map[string][]int32{}
	if layout != nil {
		for _, t := range layout.Tensors {
			missing[t.Name] = t.Dims
		}
	}
	for r.At < r.Size {
		at := r.At
		t, err := r.tensor()
		if err != nil {
			return err
		}
		if layout != nil {
			expected, ok := missing[t.Name]
			if !ok {
				return fmt.Errorf("%w: tensor at byte %d: found %q, which a Whisper model of these dimensions has not (or not twice)", ErrNotWhisper, at, t.Name)
			}
			if delete(missing, t.Name); !slices.Equal(t.Dims, expected) {
				return fmt.Errorf("%w: tensor %s: expected dimensions %v, found %v", ErrNotWhisper, t.Name, expected, t.Dims)
			}
		}
		if err := r.weights(&t); err != nil {
			return err
		}
		if w.Index = append(w.Index, t); len(w.Index) > maxTensor {
			return fmt.Errorf("%w: more than %d tensors", ErrNotWhisper, maxTensor)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: expected %d more tensors, the first %s; found the end of the file", ErrNotWhisper, len(missing), slices.Min(slices.Collect(maps.Keys(missing))))
	}
	if len(w.Index) == 0 {
		return fmt.Errorf("%w: it holds no weights", ErrNotWhisper)
	}
	return nil
}

// tensor reads the head of a tensor.
func (r reader) tensor() (t Tensor, err error) {
	where := fmt.Sprintf("tensor at byte %d", r.At)
	dims, length := r.word(), r.word()
	t.Kind = r.word()
	if r.Err == nil && (dims < 1 || dims > 4 || length < 1 || length > maxName) {
		return t, fmt.Errorf("%w: %s: expected 1 to 4 dimensions and a name of 1 to %d bytes, found %d and %d", ErrNotWhisper, where, maxName, dims, length)
	}
	for i := int32(0); i < dims && r.Err == nil; i++ {
		t.Dims = append(t.Dims, r.word())
	}
	t.Name, t.Offset = string(r.Bytes(int64(length))), r.At
	return t, r.failure(where)
}

// weights skips the numbers of a tensor and sets their size.
func (r reader) weights(t *Tensor) error {
	b, ok := blocks[t.Kind]
	if !ok || int64(t.Dims[0])%b.n != 0 {
		return fmt.Errorf("%w: tensor %s: expected a type that fits %v, found type %d", ErrNotWhisper, t.Name, t.Dims, t.Kind)
	}
	count := int64(1)
	for _, d := range t.Dims {
		if d < 1 || int64(d) > r.Size || count > r.Size*256/int64(d) {
			return fmt.Errorf("%w: tensor %s: %v numbers are more than the file has", ErrNotWhisper, t.Name, t.Dims)
		}
		count *= int64(d)
	}
	t.Size = count / b.n * b.size
	r.Skip(t.Size)
	return r.failure("tensor " + t.Name)
}

// readAhead is the size of one read: a vocabulary is 50,000 short words, and a
// system call for each would take longer than the rest of the check.
const readAhead = 16 << 10

// reader reads the parts of a file.
type reader struct{ *weightfile.Reader }

// failure returns the reader's error, if any, with its part of the file.
func (r reader) failure(part string) error {
	if r.Err == nil || r.Unread {
		return r.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrNotWhisper, part, r.Err)
}

func (r reader) word() int32 { return int32(r.Uint32()) }
