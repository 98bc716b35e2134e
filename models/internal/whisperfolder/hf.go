package whisperfolder

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/models"
)

// hf holds the weights of a model of transformers.
type hf struct {
	dir     string
	tensors map[string]tensorOfFile
	used    map[string]bool
}

type tensorOfFile struct {
	weightfile.Tensor
	file io.ReaderAt
	path string
}

// openHF opens a folder of transformers.
func (f *Folder) openHF(dir string) error {
	path := filepath.Join(dir, configFile)
	var c config
	if err := readJSON(path, maxConfig, &c); err != nil {
		return err
	}
	if c.Scaled || c.Activation != "" && c.Activation != "gelu" {
		return fmt.Errorf("%w: %s: expected unscaled embeddings and activation_function gelu, found scale_embedding %t and %.40q",
			models.ErrUnsupported, path, c.Scaled, c.Activation)
	}
	w := &hf{dir: dir, tensors: map[string]tensorOfFile{}, used: map[string]bool{}}
	f.weights = w
	if err := f.shards(w); err != nil {
		return err
	}
	if err := f.measure(); err != nil {
		return err
	}
	h := &f.Header
	h.AudioHeads, h.TextHeads, h.AudioLayers, h.TextLayers = c.AudioHeads, c.TextHeads, c.AudioLayers, c.TextLayers
	return f.generation(dir, c)
}

// generation reads generation_config.json.
func (f *Folder) generation(dir string, c config) error {
	f.Origin, f.AlignmentHeads = c.Name, c.AlignmentHeads
	var g config
	switch err := readJSON(filepath.Join(dir, "generation_config.json"), maxConfig, &g); {
	case errors.Is(err, models.ErrMissing):
	case err != nil:
		return err
	case g.NoTimes == nil:
		f.note("generation_config.json names no no_timestamps_token_id: the model was probably trained on texts without times, and may say no times of phrases")
	}
	if g.AlignmentHeads != nil {
		f.AlignmentHeads = g.AlignmentHeads
	}
	return nil
}

// shards opens the files with the weights: one, or all of the index.
func (f *Folder) shards(w *hf) error {
	if exists(w.dir, weightsFile) {
		return f.shard(w, weightsFile, nil)
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	path := filepath.Join(w.dir, shardIndex)
	if err := readJSON(path, maxVocabulary, &index); err != nil {
		return err
	}
	var names []string
	for tensor, name := range index.Files {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return fmt.Errorf("%w: %s: tensor %.100q: expected a file of the folder, found %.100q", models.ErrBroken, path, tensor, name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(names) > maxShards {
			return fmt.Errorf("%w: %s: more than %d files", models.ErrBroken, path, maxShards)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := f.shard(w, name, index.Files); err != nil {
			return err
		}
	}
	for tensor, name := range index.Files {
		if _, ok := w.tensors[tensor]; !ok {
			return fmt.Errorf("%w: %s: expected tensor %.100q in %s, found none", models.ErrBroken, path, tensor, name)
		}
	}
	return nil
}

// maxShards limits the files of one model.
const maxShards = 200

// shard opens a file with weights; index, if any, maps tensors to files.
func (f *Folder) shard(w *hf, name string, index map[string]string) error {
	path := filepath.Join(w.dir, name)
	file, size, err := f.open(path)
	if err != nil {
		return err
	}
	tensors, err := weightfile.ReadSafetensors(file, size)
	if err != nil {
		return brokenFile(path, err, weightfile.ErrInvalid)
	}
	for tensor, t := range tensors {
		if index != nil && index[tensor] != name {
			return fmt.Errorf("%w: %s: tensor %.100q: expected it where the index says, in %.100q", models.ErrBroken, path, tensor, index[tensor])
		}
		w.tensors[tensor] = tensorOfFile{t, file, path}
	}
	return nil
}

// tensor returns a tensor by the name in its file.
func (w *hf) tensor(name string) (*values, error) {
	t, ok := w.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s: expected a tensor %s, found none", models.ErrBroken, w.dir, name)
	}
	w.used[name] = true
	label := fmt.Sprintf("%s: tensor %s", t.path, name)
	f, ok := formats[t.Type]
	if !ok || integer(t.Type) {
		return nil, fmt.Errorf("%w: %s: expected F32, F16 or BF16, found %s", models.ErrUnsupported, label, t.Type)
	}
	return stored(label, t.file, t.Tensor, f), nil
}

// hfName converts OpenAI's name of a tensor to the name in transformers.
func hfName(name string) string {
	if side, ok := strings.CutSuffix(name, ".positional_embedding"); ok {
		return side + ".embed_positions.weight"
	}
	if n, prefix, last := groupOf(name); n != nil {
		return strings.Replace(prefix, ".blocks.", ".layers.", 1) + n.hf + "." + last
	}
	return name
}

func (w *hf) find(name string) (*values, error) {
	name = hfName(name)
	if _, bare := w.tensors["encoder.conv1.weight"]; !bare { // saved with the projection
		name = "model." + name
	}
	return w.tensor(name)
}

// rest checks that the projection equals the embedding, that keys have no bias,
// and that no other tensor remains unread.
func (w *hf) rest() error {
	embedding, err := w.find("decoder.token_embedding.weight")
	if err != nil {
		return err
	}
	for name := range w.tensors {
		check := zero
		switch {
		case w.used[name]:
			continue
		case name == "proj_out.weight":
			check = func(projection *values) error { return tied(projection, embedding) }
		case !strings.HasSuffix(name, "_attn.k_proj.bias"):
			return fmt.Errorf("%w: %s: found a tensor %.100q, which a Whisper model has not", models.ErrUnsupported, w.tensors[name].path, name)
		}
		v, err := w.tensor(name)
		if err != nil {
			return err
		}
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}
