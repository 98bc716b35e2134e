package whisper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Header is the beginning of a Whisper model in ggml's format: the dimensions of the
// network, in the order of the file.
type Header struct {
	Vocabulary int32 // 51864 English only, 51865 multilingual, 51866 large-v3
	AudioContext, AudioState, AudioHeads, AudioLayers,
	TextContext, TextState, TextHeads, TextLayers,
	Mels int32
	Type int32 // type of the large tensors, + 1000 times the quantisation's version
}

// role is what a model file is to the engine, for error texts.
const role = "standard recogniser"

const (
	magic       = 0x67676d6c
	melBins     = 201 // of a Fourier transform of 400 samples
	maxToken    = 1024
	maxName     = 128
	maxElements = 1 << 31
)

// blocks gives, by ggml's number of a tensor type, how many values a block has and
// how many bytes it takes.
var blocks = map[int32]struct{ values, bytes int64 }{
	0: {1, 4}, 1: {1, 2}, // f32, f16
	2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 8: {32, 34}, // q4_0 q4_1 q5_0 q5_1 q8_0
	10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, // q2_K to q6_K
}

// tensorTypes gives the tensor type of the large tensors by the header's file type.
var tensorTypes = map[int32]int32{0: 0, 1: 1, 2: 2, 3: 3, 7: 8, 8: 6, 9: 7, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14}

// readAhead is how much is read at once: a vocabulary is 50,000 short words, and a
// call of the system for each takes longer than all else together.
const readAhead = 16 << 10

// reader reads little-endian words at a position, with the first error kept.
type reader struct {
	r     io.ReaderAt
	at    int64
	size  int64
	err   error
	ahead []byte // of the file, from begin on
	begin int64
}

// bytes returns the next n bytes, which stay as they are until the next call.
func (r *reader) bytes(n int64) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || r.at+n > r.size {
		r.err = fmt.Errorf("it ends at byte %d, expected %d more bytes at %d", r.size, n, r.at)
		return nil
	}
	if r.at < r.begin || r.at+n > r.begin+int64(len(r.ahead)) {
		want := min(max(n, readAhead), r.size-r.at)
		if int64(cap(r.ahead)) < want {
			r.ahead = make([]byte, want)
		}
		r.ahead, r.begin = r.ahead[:want], r.at
		if got, err := r.r.ReadAt(r.ahead, r.at); err != nil && !(errors.Is(err, io.EOF) && int64(got) == want) {
			r.err, r.ahead = err, nil
			return nil
		}
	}
	b := r.ahead[r.at-r.begin:][:n]
	r.at += n
	return b
}

func (r *reader) word() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *reader) skip(n int64) {
	if r.err == nil && (n < 0 || r.at+n > r.size) {
		r.err = fmt.Errorf("it ends at byte %d, expected %d more bytes at %d", r.size, n, r.at)
	}
	r.at += n
}

// Check reads a model file of the given size as far as is needed to know that
// libwhisper will not fail on it: libwhisper answers some damaged files by ending the
// process. It walks over header, mel filters, vocabulary and the table of tensors, and
// compares the tensors' names and dimensions with those that the header implies; the
// weights themselves are not read. The error says what was expected and what found; it
// wraps ErrModel.
func Check(file io.ReaderAt, size int64) (Header, error) {
	h, err := check(file, size)
	if err != nil {
		return Header{}, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return h, nil
}

func check(file io.ReaderAt, size int64) (Header, error) {
	r := &reader{r: file, size: size}
	m := uint32(r.word())
	if r.err != nil {
		return Header{}, fmt.Errorf("expected a Whisper model in ggml's format, found a file of %d bytes", size)
	}
	if m != magic {
		return Header{}, fmt.Errorf("expected a Whisper model in ggml's format (first bytes %q), found %q%s", "lmgg", word4(m), otherFormat(m))
	}
	var h Header
	for _, f := range []*int32{
		&h.Vocabulary, &h.AudioContext, &h.AudioState, &h.AudioHeads, &h.AudioLayers,
		&h.TextContext, &h.TextState, &h.TextHeads, &h.TextLayers, &h.Mels, &h.Type,
	} {
		*f = r.word()
	}
	if r.err != nil {
		return h, fmt.Errorf("header: %w", r.err)
	}
	if err := h.sound(); err != nil {
		return h, err
	}
	if mels, bins := r.word(), r.word(); r.err == nil && (mels != h.Mels || bins != melBins) {
		return h, fmt.Errorf("mel filters: expected %d bands of %d bins, found %d of %d", h.Mels, melBins, mels, bins)
	}
	r.skip(4 * int64(h.Mels) * melBins)
	words := r.word()
	if r.err == nil && (words < 1 || words > h.Vocabulary) {
		return h, fmt.Errorf("vocabulary: expected 1 to %d tokens, found %d", h.Vocabulary, words)
	}
	for i := int32(0); i < words && r.err == nil; i++ {
		n := r.word()
		if r.err == nil && (n < 0 || n > maxToken) {
			return h, fmt.Errorf("vocabulary: expected a token of at most %d bytes at number %d, found %d", maxToken, i, n)
		}
		r.skip(int64(n))
	}
	if r.err != nil {
		return h, fmt.Errorf("mel filters and vocabulary: %w", r.err)
	}
	return h, h.tensors(r)
}

func word4(m uint32) string {
	return string(binary.LittleEndian.AppendUint32(nil, m))
}

func otherFormat(m uint32) string {
	switch word4(m) {
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

// sound checks that the dimensions are possible, and such that libwhisper can compute.
func (h Header) sound() error {
	fields := []struct {
		name     string
		v        int32
		min, max int32
	}{
		{"vocabulary (n_vocab)", h.Vocabulary, 51864, 51866},
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
			return fmt.Errorf("header: expected %s %d, found %d", f.name, f.min, f.v)
		default:
			return fmt.Errorf("header: expected %s of %d to %d, found %d", f.name, f.min, f.max, f.v)
		}
	}
	if h.AudioState != h.TextState {
		return fmt.Errorf("header: expected equal widths of audio and text, found %d and %d", h.AudioState, h.TextState)
	}
	if h.AudioState%h.AudioHeads != 0 || h.TextState%h.TextHeads != 0 || h.AudioState/h.AudioHeads%2 != 0 || h.TextState/h.TextHeads%2 != 0 {
		return fmt.Errorf("header: expected widths that the heads divide evenly, found %d for %d and %d for %d", h.AudioState, h.AudioHeads, h.TextState, h.TextHeads)
	}
	t, ok := tensorTypes[h.Type%1000]
	if !ok || h.Type < 0 || h.Type >= 3000 {
		return fmt.Errorf("header: expected a type that libwhisper 1.9 knows, found %d", h.Type)
	}
	if int64(h.AudioState)%blocks[t].values != 0 {
		return fmt.Errorf("header: expected a width that is a multiple of the type's blocks of %d, found %d", blocks[t].values, h.AudioState)
	}
	return nil
}

// shape is a tensor's dimensions, the innermost first.
type shape []int32

// want lists the tensors that a model of these dimensions has.
func (h Header) want() map[string]shape {
	a, n := h.AudioState, h.TextState
	m := map[string]shape{
		"encoder.positional_embedding":   {a, h.AudioContext},
		"encoder.conv1.weight":           {3, h.Mels, a},
		"encoder.conv1.bias":             {1, a},
		"encoder.conv2.weight":           {3, a, a},
		"encoder.conv2.bias":             {1, a},
		"encoder.ln_post.weight":         {a},
		"encoder.ln_post.bias":           {a},
		"decoder.positional_embedding":   {n, h.TextContext},
		"decoder.token_embedding.weight": {n, h.Vocabulary},
		"decoder.ln.weight":              {n},
		"decoder.ln.bias":                {n},
	}
	block := func(prefix string, n int32, attention ...string) {
		norm := func(name string) {
			m[prefix+name+".weight"], m[prefix+name+".bias"] = shape{n}, shape{n}
		}
		for _, at := range attention {
			norm(at + "_ln")
			for _, part := range []string{".query", ".key", ".value", ".out"} {
				m[prefix+at+part+".weight"] = shape{n, n}
				if part != ".key" {
					m[prefix+at+part+".bias"] = shape{n}
				}
			}
		}
		norm("mlp_ln")
		m[prefix+"mlp.0.weight"], m[prefix+"mlp.0.bias"] = shape{n, 4 * n}, shape{4 * n}
		m[prefix+"mlp.2.weight"], m[prefix+"mlp.2.bias"] = shape{4 * n, n}, shape{n}
	}
	for i := range h.AudioLayers {
		block(fmt.Sprintf("encoder.blocks.%d.", i), a, "attn")
	}
	for i := range h.TextLayers {
		block(fmt.Sprintf("decoder.blocks.%d.", i), n, "attn", "cross_attn")
	}
	return m
}

// tensors walks over the tensors to the end of the file.
func (h Header) tensors(r *reader) error {
	want := h.want()
	for r.at < r.size {
		begin := r.at
		dims, length, typ := r.word(), r.word(), r.word()
		if r.err == nil && (dims < 1 || dims > 4 || length < 1 || length > maxName) {
			return fmt.Errorf("tensor at byte %d: expected 1 to 4 dimensions and a name of 1 to %d bytes, found %d and %d", begin, maxName, dims, length)
		}
		found := make(shape, 0, 4)
		for i := int32(0); i < dims && r.err == nil; i++ {
			found = append(found, r.word())
		}
		name := string(r.bytes(int64(length)))
		if r.err != nil {
			return fmt.Errorf("tensor at byte %d: %w", begin, r.err)
		}
		expected, ok := want[name]
		if !ok {
			return fmt.Errorf("tensor at byte %d: found %q, which a Whisper model of these dimensions has not (or not twice)", begin, name)
		}
		delete(want, name)
		if !slices.Equal(found, expected) {
			return fmt.Errorf("tensor %s: expected dimensions %v, found %v", name, expected, found)
		}
		b, ok := blocks[typ]
		elements := int64(1)
		for _, d := range found {
			elements *= int64(d)
		}
		if !ok || elements > maxElements || int64(found[0])%b.values != 0 {
			return fmt.Errorf("tensor %s: expected a type that fits %v, found type %d", name, found, typ)
		}
		r.skip(elements / b.values * b.bytes)
		if r.err != nil {
			return fmt.Errorf("tensor %s: %w", name, r.err)
		}
	}
	if len(want) > 0 {
		missing := make([]string, 0, len(want))
		for name := range want {
			missing = append(missing, name)
		}
		slices.Sort(missing)
		return fmt.Errorf("expected %d more tensors, the first %s; found the end of the file", len(missing), missing[0])
	}
	return nil
}

// Multilingual tells whether the model knows more than English.
func (h Header) Multilingual() bool { return h.Vocabulary >= 51865 }
