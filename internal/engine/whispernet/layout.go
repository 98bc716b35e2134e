package whispernet

import (
	"fmt"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// MelBins is the number of bins of a Fourier transform of 400 samples.
const MelBins = 201

// headerTypes maps the header's file type to the type of the large tensors.
var headerTypes = map[int32]int32{0: 0, 1: 1, 2: 2, 3: 3, 7: 8, 8: 6, 9: 7, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14}

// layout returns the layout of a model file with the header h.
func layout(h ggmlfile.Header) (ggmlfile.Layout, error) {
	if err := sound(h); err != nil {
		return ggmlfile.Layout{}, fmt.Errorf("%w: header: %w", ggmlfile.ErrNotWhisper, err)
	}
	return ggmlfile.Layout{Bins: MelBins, Tensors: ggmlfile.Tensors(h)}, nil
}

// sound checks that the dimensions are possible for libwhisper.
func sound(h ggmlfile.Header) error {
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
			return fmt.Errorf("expected %s %d, found %d", f.name, f.min, f.v)
		default:
			return fmt.Errorf("expected %s of %d to %d, found %d", f.name, f.min, f.max, f.v)
		}
	}
	if h.AudioState != h.TextState {
		return fmt.Errorf("expected equal widths of audio and text, found %d and %d", h.AudioState, h.TextState)
	}
	if h.AudioState%h.AudioHeads != 0 || h.TextState%h.TextHeads != 0 || h.AudioState/h.AudioHeads%2 != 0 || h.TextState/h.TextHeads%2 != 0 {
		return fmt.Errorf("expected widths that the heads divide evenly, found %d for %d and %d for %d", h.AudioState, h.AudioHeads, h.TextState, h.TextHeads)
	}
	t, ok := headerTypes[h.Type%1000]
	if !ok || h.Type < 0 || h.Type >= 3000 {
		return fmt.Errorf("expected a type that libwhisper 1.9 knows, found %d", h.Type)
	}
	if n := ggmlfile.BlockSize(t); int64(h.AudioState)%n != 0 {
		return fmt.Errorf("expected a width that is a multiple of the type's blocks of %d, found %d", n, h.AudioState)
	}
	return nil
}
