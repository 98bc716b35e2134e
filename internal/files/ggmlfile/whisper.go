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
	Vocabulary              int32 // tokens: 51864 English only, 51865 multilingual, 51866 large-v3
	AudioContext            int32 // encoder positions (1500 = 30 s)
	AudioState              int32 // width of the encoder
	AudioHeads, AudioLayers int32
	TextContext             int32 // decoder positions
	TextState               int32 // width of the decoder
	TextHeads, TextLayers   int32
	Mels                    int32 // mel bands, 80 or 128
	Type                    int32 // ggml's number for the type of the weights, + 1000 times the quantization's version
}

// Multilingual reports whether the vocabulary has language tokens, by the rule
// of whisper.cpp: English-only models have 51864 tokens.
func (h Header) Multilingual() bool { return h.Vocabulary >= 51865 }

// Languages returns how many of Whisper's languages the model supports, in the
// order of their tokens: English alone, or all for which it has a token.
func (h Header) Languages() int {
	if !h.Multilingual() {
		return 1
	}
	return int(h.Vocabulary) - 51766
}

// Translates reports whether the model may have been trained to translate into
// English. English-only models have not. Turbo and distilled models, whose
// decoder has fewer layers than the encoder, were also trained without
// translations.
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

// Limits of the vocabulary and of the tensors.
const (
	maxToken  = 1 << 10 // bytes of one token's text
	maxTensor = 1 << 16 // tensors
	maxName   = 1 << 7  // bytes of a tensor's name
)

// MelBins is the number of bins of a Fourier transform of 400 samples.
const MelBins = 201

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

// Check reads a model of size bytes: dimensions that libwhisper accepts, mel
// filters, vocabulary and every tensor within the file, and nothing after the
// last one. It does not read the weights. If whole is set, the mel filters must
// have [MelBins], and the file must have exactly the tensors that [Tensors]
// lists. Errors name the expected and the actual value; they wrap ErrNotWhisper
// unless reading failed.
func Check(file io.ReaderAt, size int64, whole bool) (*Checked, error) {
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
	if err := w.Check(); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrNotWhisper, err)
	}
	if err := w.vocabulary(r, whole); err != nil {
		return nil, err
	}
	if err := w.tensors(r, whole); err != nil {
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

// headerTypes maps the header's file type to the type of the large tensors.
var headerTypes = map[int32]int32{0: 0, 1: 1, 2: 2, 3: 3, 7: 8, 8: 6, 9: 7, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14}

// Check checks that the dimensions are possible for libwhisper. The error names
// the dimension, the possible values and the file's.
func (h Header) Check() error {
	fields := []struct {
		name        string
		v, min, max int32
	}{
		{"vocabulary without added or missing tokens (n_vocab)", h.Vocabulary, 51864, 51866},
		{"audio context (n_audio_ctx)", h.AudioContext, 1500, 1500},
		{"audio width (n_audio_state)", h.AudioState, 32, 4096},
		{"audio heads (n_audio_head)", h.AudioHeads, 1, 128},
		{"audio layers (n_audio_layer)", h.AudioLayers, 1, 128},
		{"text context (n_text_ctx)", h.TextContext, 32, 8192},
		{"text width (n_text_state)", h.TextState, 32, 4096},
		{"text heads (n_text_head)", h.TextHeads, 1, 128},
		{"text layers (n_text_layer)", h.TextLayers, 1, 128},
		{"mel bands (n_mels)", h.Mels, 80, 128},
	}
	for _, f := range fields {
		switch {
		case f.v >= f.min && f.v <= f.max:
		case f.min == f.max:
			return fmt.Errorf("expected %s %d, found %d", f.name, f.min, f.v)
		default:
			return fmt.Errorf("expected %s of %d to %d, found %d", f.name, f.min, f.max, f.v)
		}
	}
	if h.AudioState != h.TextState {
		return fmt.Errorf("expected equal widths of audio and text, found %d and %d", h.AudioState, h.TextState)
	}
	if h.AudioState%(2*h.AudioHeads) != 0 || h.TextState%(2*h.TextHeads) != 0 {
		return fmt.Errorf("expected widths that the heads divide evenly, found %d for %d and %d for %d", h.AudioState, h.AudioHeads, h.TextState, h.TextHeads)
	}
	t, ok := headerTypes[h.Type%1000]
	if !ok || h.Type < 0 || h.Type >= 3000 {
		return fmt.Errorf("expected a type that libwhisper 1.9 knows, found %d", h.Type)
	}
	if n := blocks[t].n; int64(h.AudioState)%n != 0 {
		return fmt.Errorf("expected a width that is a multiple of the type's blocks of %d, found %d", n, h.AudioState)
	}
	return nil
}

func (w *Checked) vocabulary(r reader, whole bool) error {
	mels, bins := r.word(), r.word()
	if r.Err == nil && (mels != w.Mels || bins < 1 || bins > MelBins || whole && bins != MelBins) {
		return fmt.Errorf("%w: mel filters: expected %d bands of %d bins, found %d of %d", ErrNotWhisper, w.Mels, MelBins, mels, bins)
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
func (w *Checked) tensors(r reader, whole bool) error {
	missing := map[string][]int32{}
	if whole {
		for _, t := range Tensors(w.Header) {
			missing[t.Name] = t.Dims
		}
	}
	for r.At < r.Size {
		at := r.At
		t, err := r.tensor()
		if err != nil {
			return err
		}
		if whole {
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

// readAhead is the size of one read: a system call for each of the 50,000 short
// words of a vocabulary would take longer than the rest of the check.
const readAhead = 16 << 10

type reader struct{ *weightfile.Reader }

// failure returns the reader's error, if any, with its part of the file.
func (r reader) failure(part string) error {
	if r.Err == nil || r.Unread {
		return r.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrNotWhisper, part, r.Err)
}

func (r reader) word() int32 { return int32(r.Uint32()) }
