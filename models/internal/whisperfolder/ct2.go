package whisperfolder

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/models"
)

type ct2 struct {
	file  io.ReaderAt
	path  string
	model *weightfile.CTranslate2
	used  map[string]bool
}

func (f *Folder) openCT2(dir string) error {
	path := filepath.Join(dir, modelBin)
	file, size, err := f.open(path)
	if err != nil {
		return err
	}
	m, err := weightfile.ReadCTranslate2(file, size)
	if err != nil {
		return brokenFile(path, err, weightfile.ErrInvalid)
	}
	if m.Spec != weightfile.WhisperSpec {
		return fmt.Errorf("%w: %s: expected a Whisper model, found one of %.100q", models.ErrUnsupported, path, m.Spec)
	}
	w := &ct2{file: file, path: path, model: m, used: map[string]bool{}}
	f.weights = w
	if err := f.measure(); err != nil {
		return err
	}
	h := &f.Header
	h.AudioLayers, h.TextLayers = w.layers("encoder"), w.layers("decoder")
	if h.AudioHeads, err = w.heads("encoder", h.AudioState); err != nil {
		return err
	}
	if h.TextHeads, err = w.heads("decoder", h.TextState); err != nil {
		return err
	}
	var c config
	if err := readJSON(filepath.Join(dir, configFile), maxConfig, &c); err != nil && !errors.Is(err, models.ErrMissing) {
		return err
	}
	f.AlignmentHeads, f.Origin = c.AlignmentHeads, c.Name
	return nil
}

// layers counts the layers of the encoder or the decoder.
func (w *ct2) layers(side string) int32 {
	n := int32(0)
	for n <= maxLayers {
		if _, ok := w.model.Find(fmt.Sprintf("%s/layer_%d/self_attention/linear_0/weight", side, n)); !ok {
			break
		}
		n++
	}
	return n
}

// heads returns the number of heads of the encoder or the decoder: the stated
// one, or the width divided by 64, which is right for every published model.
func (w *ct2) heads(side string, width int32) (int32, error) {
	name := side + "/num_heads"
	v, ok := w.model.Find(name)
	if !ok {
		return width / 64, nil
	}
	raw := make([]byte, 2)
	if v.Type != weightfile.I16 || v.Size != int64(len(raw)) {
		return 0, fmt.Errorf("%w: %s: variable %s: expected one number of I16, found %v of %s", models.ErrBroken, w.path, name, v.Shape, v.Type)
	}
	if n, err := w.file.ReadAt(raw, v.At); err != nil && n < len(raw) {
		return 0, err
	}
	return int32(int16(binary.LittleEndian.Uint16(raw))), nil
}

// variable returns a variable, divided by its scale if it has one.
func (w *ct2) variable(name string) (*values, error) {
	name = cmp.Or(w.model.Aliases[name], name)
	v, ok := w.model.Variables[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s: expected a variable %s, found none", models.ErrBroken, w.path, name)
	}
	w.used[name] = true
	label := fmt.Sprintf("%s: variable %s", w.path, name)
	f, ok := formats[v.Type]
	if !ok {
		return nil, fmt.Errorf("%w: %s: expected floats, I8 or I16, found %s", models.ErrBroken, label, v.Type)
	}
	numbers := stored(label, w.file, v, f)
	integers := integer(v.Type)
	scale, has := w.model.Variables[name+"_scale"]
	if has != integers {
		return nil, fmt.Errorf("%w: %s of %s: expected a scale for integers and for nothing else, found %t", models.ErrBroken, label, v.Type, has)
	}
	if !has {
		return numbers, nil
	}
	w.used[name+"_scale"] = true
	of, ok := formats[scale.Type]
	list := stored(label+"_scale", w.file, scale, of)
	if n := product(list.shape); !ok || len(v.Shape) == 0 || n != 1 && n != v.Shape[0] || n > product(numbers.shape) {
		return nil, fmt.Errorf("%w: %s_scale: expected one number or one for each of %v rows, found %v of %s", models.ErrBroken, label, v.Shape, scale.Shape, scale.Type)
	}
	scales, err := list.all()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(scales, func(s float32) bool { return !(s > 0) }) {
		return nil, fmt.Errorf("%w: %s_scale: expected numbers above 0", models.ErrBroken, label)
	}
	return numbers.scaled(scales), nil
}

func (w *ct2) find(name string) (*values, error) {
	if side, ok := strings.CutSuffix(name, ".positional_embedding"); ok {
		return w.variable(side + "/position_encodings/encodings")
	}
	n, prefix, last := groupOf(name)
	if n == nil {
		return nil, fmt.Errorf("%w: %s: no variable is known for %s", models.ErrBroken, w.path, name)
	}
	if side, layer, ok := strings.Cut(strings.TrimSuffix(prefix, "."), ".blocks."); ok {
		prefix = side + "/layer_" + layer + "/"
	}
	if strings.HasSuffix(n.ct2, "layer_norm") {
		last = map[string]string{"weight": "gamma", "bias": "beta"}[last]
	}
	return w.part(prefix+n.ct2+"/"+last, n.part, n.parts)
}

// part returns part i of n equal parts of a variable.
func (w *ct2) part(name string, i, n int64) (*values, error) {
	v, err := w.variable(name)
	if err != nil || n == 1 {
		return v, err
	}
	if len(v.shape) == 0 || v.shape[0]%n != 0 {
		return nil, fmt.Errorf("%w: %s: expected %d parts of equal size, found %v", models.ErrBroken, v.name, n, v.shape)
	}
	return v.part(i, n), nil
}

// rest checks that the projection equals the embedding, that keys have no bias,
// and that only settings remain unread.
func (w *ct2) rest() error {
	if _, own := w.model.Variables["decoder/projection/weight"]; own {
		projection, err := w.variable("decoder/projection/weight")
		if err != nil {
			return err
		}
		embedding, err := w.variable("decoder/embeddings/weight")
		if err != nil {
			return err
		}
		if err := tied(projection, embedding); err != nil {
			return err
		}
	}
	for name, v := range w.model.Variables {
		var part, parts int64
		switch {
		case strings.HasSuffix(name, "self_attention/linear_0/bias"):
			part, parts = 1, 3
		case strings.HasSuffix(name, "attention/linear_1/bias") && !strings.HasSuffix(name, "self_attention/linear_1/bias"):
			part, parts = 0, 2
		case name == "decoder/projection/bias":
			part, parts = 0, 1
		case len(v.Shape) > 0 && !w.used[name]:
			return fmt.Errorf("%w: %s: found a variable %.100q, which a Whisper model has not", models.ErrUnsupported, w.path, name)
		default:
			continue
		}
		bias, err := w.part(name, part, parts)
		if err != nil {
			return err
		}
		if err := zero(bias); err != nil {
			return err
		}
	}
	return nil
}

// tied returns an error unless two tensors are equal.
func tied(projection, embedding *values) error {
	if !projection.like(embedding.shape) {
		return fmt.Errorf("%w: %s: expected the shape of the embedding, %v, found %v", models.ErrUnsupported, projection.name, embedding.shape, projection.shape)
	}
	other := make([]float32, portion)
	return projection.each(func(part []float32, at int64) error {
		if err := embedding.read(other[:len(part)], at); err != nil {
			return err
		}
		if !slices.Equal(part, other[:len(part)]) {
			return fmt.Errorf("%w: %s differs from the embedding of the tokens: a ggml file has one matrix for both, so the model would answer otherwise",
				models.ErrUnsupported, projection.name)
		}
		return nil
	})
}

// zero returns an error if an omitted bias is not zero.
func zero(bias *values) error {
	return bias.each(func(part []float32, _ int64) error {
		if slices.ContainsFunc(part, func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("%w: %s: expected zeros where a Whisper model has no bias, found other numbers", models.ErrUnsupported, bias.name)
		}
		return nil
	})
}

// brokenFile adds the file's name to a parser's error.
func brokenFile(path string, err, sentinel error) error {
	if errors.Is(err, sentinel) {
		return fmt.Errorf("%w: %s: %w", models.ErrBroken, path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
