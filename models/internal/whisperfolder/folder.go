// Package whisperfolder reads a folder with a Whisper model in the layout of
// CTranslate2 or Hugging Face's transformers, and writes it as a ggml file, row
// by row: memory does not depend on the model's size.
package whisperfolder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/dsp"
	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/models"
)

// The files that identify a folder as a Whisper model.
const (
	modelBin       = "model.bin"                    // of CTranslate2
	weightsFile    = "model.safetensors"            // of transformers
	shardIndex     = "model.safetensors.index.json" // of transformers, if there are several files
	configFile     = "config.json"
	adapterWeights = "adapter_model.safetensors" // of PEFT
	adapterConfig  = "adapter_config.json"
)

// maxLayers limits the layers of the encoder and of the decoder, timeTokens is
// the number of time marks, and spectrum the samples of a Fourier transform.
const maxLayers, timeTokens, spectrum = 128, 1501, 400

// Folder is an opened model. The caller closes it.
type Folder struct {
	// Layout is the name of the layout: "CTranslate2" or "safetensors".
	Layout string
	// Origin is the model's name in the configuration; may be empty.
	Origin string
	// License is the license in README.md's front matter; may be empty.
	License string
	// Header describes the model. Its Type is set by Write.
	Header ggmlfile.Header
	// AlignmentHeads are the pairs of decoder layer and head whose attention
	// follows the audio; nil if the folder lists none.
	AlignmentHeads [][2]int
	// Sources are the files with the weights.
	Sources []string
	// Notes holds findings to show to the user.
	Notes []string

	weights weights
	files   []*os.File
	tokens  [][]byte
}

// weights finds tensors by OpenAI's names, which ggml files share.
type weights interface {
	// find returns the tensor with a name.
	find(name string) (*values, error)
	// rest refuses tensors that no Whisper model has, and checks omitted ones.
	rest() error
}

// Find returns the layout of the Whisper model in a folder; empty if there is
// none. The layout of a folder that only holds an adapter's weights is
// "adapter", which Open refuses.
func Find(dir string) string {
	if head, err := Begin(filepath.Join(dir, modelBin)); err == nil {
		if spec, ok := weightfile.CTranslate2Spec(head); ok && spec == weightfile.WhisperSpec {
			return layoutCT2
		}
	}
	if exists(dir, weightsFile) || exists(dir, shardIndex) {
		var c config
		if err := readJSON(filepath.Join(dir, configFile), maxConfig, &c); err == nil && c.ModelType == "whisper" {
			return layoutHF
		}
		return ""
	}
	if exists(dir, adapterWeights) {
		return layoutAdapter
	}
	return ""
}

// Holds reports whether a file is named like Whisper's weights or a part.
func Holds(path string) bool {
	name := filepath.Base(path)
	return name == modelBin || name == adapterWeights || name == shardIndex ||
		strings.HasPrefix(name, "model") && strings.HasSuffix(name, ".safetensors")
}

const (
	layoutCT2     = "CTranslate2"
	layoutHF      = "safetensors"
	layoutAdapter = "adapter"
)

// Snapshot returns the folder with the files of a model that a download cache
// of Hugging Face holds (models--ORGANIZATION--NAME/snapshots/COMMIT), and the
// model's name. For any other folder it returns the folder and its own name.
func Snapshot(dir string) (files, name string) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if commit, err := ReadText(filepath.Join(dir, "refs", "main"), maxCommit); err == nil {
		if at := filepath.Join(dir, "snapshots", filepath.Base(strings.TrimSpace(string(commit)))); exists(at, configFile) {
			dir = at
		}
	}
	name = filepath.Base(dir)
	if parent := filepath.Dir(dir); filepath.Base(parent) == "snapshots" {
		if parts := strings.Split(filepath.Base(filepath.Dir(parent)), "--"); len(parts) > 1 && parts[0] == "models" {
			name = parts[len(parts)-1]
		}
	}
	return dir, name
}

// maxCommit limits the length of a commit's name, with a margin.
const maxCommit = 100 // bytes

// Open opens the model in a folder. Errors name the file, the expected and the
// actual value; they wrap ErrBroken, ErrUnsupported or ErrMissing of models.
func Open(dir string) (f *Folder, err error) {
	if exists(dir, adapterWeights) || exists(dir, adapterConfig) {
		return nil, fmt.Errorf("%w: %s: found a LoRA adapter (%s): merge it into its base model with PEFT, then import FOLDER: "+
			"PeftModel.from_pretrained(base, %q).merge_and_unload().save_pretrained(FOLDER), and WhisperProcessor.from_pretrained(BASE).save_pretrained(FOLDER)",
			models.ErrUnsupported, dir, adapterConfig, dir)
	}
	f = &Folder{Layout: Find(dir)}
	defer func() {
		if err != nil {
			f.Close()
			f = nil
		}
	}()
	switch f.Layout {
	case layoutCT2:
		err = f.openCT2(dir)
	case layoutHF:
		err = f.openHF(dir)
	default:
		return f, fmt.Errorf("%w: %s: expected a folder with a Whisper model of CTranslate2 (%s) or transformers (%s), found neither",
			models.ErrMissing, dir, modelBin, weightsFile)
	}
	if err != nil {
		return f, err
	}
	h := f.Header
	_, fileType, _ := ggmlfile.Q8_0.Numbers() // for any type, because the widths are multiples of its blocks
	h.Type = int32(fileType)
	if err := h.Check(); err != nil {
		return f, fmt.Errorf("%w: %s: %w", models.ErrUnsupported, dir, err)
	}
	f.AlignmentHeads = f.checkedHeads(f.AlignmentHeads)
	var timed bool
	if f.tokens, timed, err = readTokens(dir, f.Header); err != nil {
		return f, err
	}
	if !timed {
		f.note("the vocabulary has special tokens, but not the time <|0.00|>: the model may have been trained on texts without times, and say no times of phrases")
	}
	f.License = cmp.Or(f.License, statedLicense(dir))
	return f, nil
}

// Close closes the files. A nil Folder has none.
func (f *Folder) Close() {
	if f == nil {
		return
	}
	for _, file := range f.files {
		file.Close()
	}
}

func (f *Folder) open(path string) (*os.File, int64, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, 0, err
	}
	f.files, f.Sources = append(f.files, file), append(f.Sources, path)
	return file, size, nil
}

// openRegular opens a file with the errors of package models.
func openRegular(path string) (*os.File, int64, error) {
	f, size, err := weightfile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %s: no such file", models.ErrMissing, path)
	case errors.Is(err, weightfile.ErrNotFile):
		err = fmt.Errorf("%w: %w", models.ErrBroken, err)
	}
	return f, size, err
}

// checkedHeads returns the alignment heads if the model has all of them.
// Otherwise it adds a note and returns nil.
func (f *Folder) checkedHeads(heads [][2]int) [][2]int {
	for _, h := range heads {
		if h[0] < 0 || h[0] >= int(f.Header.TextLayers) || h[1] < 0 || h[1] >= int(f.Header.TextHeads) {
			f.note("alignment heads are left out: layer %d, head %d is named, the decoder has %d layers of %d heads",
				h[0], h[1], f.Header.TextLayers, f.Header.TextHeads)
			return nil
		}
	}
	if len(heads) == 0 {
		f.note("no alignment heads are named: words are timed by those of the published model of its shape, or by such as follow the sound")
		return nil
	}
	return heads
}

func (f *Folder) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// portion is the numbers processed at a time, in whole quantized blocks.
const portion = 1 << 16

// Write writes the model as a ggml file whose matrices have the type typ.
// Numbers beyond the range of 16 bits are clamped, with a note. progress is
// called with the finished share; it may be nil, and its error stops Write.
func (f *Folder) Write(w io.Writer, typ ggmlfile.Type, progress func(done float64) error) error {
	large, fileType, ok := typ.Numbers()
	if !ok {
		return fmt.Errorf("type: expected %s, %s or %s, found %q", ggmlfile.F16, ggmlfile.Q8_0, ggmlfile.Q5_0, typ)
	}
	h := f.Header
	h.Type = int32(fileType)
	slots := ggmlfile.Tensors(h)
	var all, done int64
	for _, s := range slots {
		all += product(shapeOf(s))
	}
	out := ggmlfile.NewWriter(w, h, slices.Concat(dsp.SlaneyFilters(int(h.Mels), spectrum)...), f.tokens)
	var clamped int64
	for _, s := range slots {
		v, err := f.weights.find(s.Name)
		if err != nil {
			return err
		}
		shape := shapeOf(s)
		if !v.like(shape) {
			return fmt.Errorf("%w: %s: expected shape %v, found %v", models.ErrBroken, v.name, shape, v.shape)
		}
		kind := kindOf(s, large)
		out.Tensor(s.Name, s.Dims, kind)
		if err := v.each(func(part []float32, _ int64) error {
			n, err := roundToHalf(part, kind)
			if err != nil {
				return fmt.Errorf("%w: %s: %w", models.ErrBroken, v.name, err)
			}
			clamped += n
			if out.Values(part, kind); out.Err() != nil {
				return out.Err()
			}
			done += int64(len(part))
			if progress == nil {
				return nil
			}
			return progress(float64(done) / float64(all))
		}); err != nil {
			return err
		}
	}
	if err := f.weights.rest(); err != nil {
		return err
	}
	if clamped > 0 {
		f.note("%d numbers were too large for 16 bits and became the largest", clamped)
	}
	return out.Err()
}

// roundToHalf rounds a part of a tensor to the 16 bits from which it is
// quantized, and returns how many numbers exceeded their range.
func roundToHalf(part []float32, kind int) (clamped int64, err error) {
	for i, v := range part {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return clamped, fmt.Errorf("expected finite numbers, found %g", v)
		}
		if kind == ggmlfile.TensorF32 {
			continue
		}
		if max(v, -v) > ggmlfile.HalfMax {
			clamped++
		}
		part[i] = onnxfile.Half(ggmlfile.Half(v))
	}
	return clamped, nil
}

func exists(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// Begin returns the first bytes of a regular file, 64 at most.
func Begin(path string) ([]byte, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return nil, err
	}
	return head[:n], nil
}

// measure sets the widths and contexts of the header from the shapes of the
// first convolution, the token embedding and both position embeddings.
func (f *Folder) measure() error {
	var found [4][]int64
	for i, s := range []struct {
		name string
		rank int
	}{{"encoder.conv1.weight", 3}, {"decoder.token_embedding.weight", 2}, {"encoder.positional_embedding", 2}, {"decoder.positional_embedding", 2}} {
		v, err := f.weights.find(s.name)
		if err != nil {
			return err
		}
		if len(v.shape) != s.rank {
			return fmt.Errorf("%w: %s: expected %d dimensions, found %v", models.ErrBroken, v.name, s.rank, v.shape)
		}
		found[i] = v.shape
	}
	h := &f.Header
	h.AudioState, h.Mels = clip(found[0][0]), clip(found[0][1])
	h.Vocabulary, h.TextState = clip(found[1][0]), clip(found[1][1])
	h.AudioContext, h.TextContext = clip(found[2][0]), clip(found[3][0])
	return nil
}

// clip limits a dimension to the header's range, to be refused later.
func clip(n int64) int32 { return int32(min(n, 1<<30)) }
