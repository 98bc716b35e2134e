package whisperfolder

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// converted returns the ggml file of a folder.
func converted(t testing.TB, dir string, typ ggmlfile.Type) ([]byte, *Folder) {
	t.Helper()
	f, err := Open(dir)
	require.NoError(t, err)
	defer f.Close()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, typ, nil))
	return b.Bytes(), f
}

// reference writes the synthetic model in transformers' layout, in 16 bits.
func reference(t testing.TB) (modeltest.Weights, string) {
	t.Helper()
	w, dir := modeltest.WhisperWeights(), t.TempDir()
	modeltest.Texts(t, dir)
	modeltest.Place(t, filepath.Join(dir, weightsFile), w.Safetensors(weightfile.F16))
	return w, dir
}

// sameFile compares hashes, to avoid printing the difference of two files.
func sameFile(t testing.TB, want, got []byte, what string) {
	t.Helper()
	assert.Equal(t, sha256.Sum256(want), sha256.Sum256(got), what)
}

// TestEveryLayoutConvertsToTheSameFile converts one model from every type,
// version and layout.
func TestEveryLayoutConvertsToTheSameFile(t *testing.T) {
	w, dir := reference(t)
	want, f := converted(t, dir, ggmlfile.F16)
	assert.Equal(t, [][2]int{{0, 1}, {1, 0}}, f.AlignmentHeads)
	assert.Equal(t, "apache-2.0", f.License)
	assert.Equal(t, "someone/whisper-made", f.Origin)
	assert.Empty(t, f.Notes)
	_, err := ggmlfile.Check(bytes.NewReader(want), int64(len(want)), true)
	require.NoError(t, err)
	for _, typ := range []weightfile.Type{weightfile.F32, weightfile.BF16} {
		modeltest.Place(t, filepath.Join(dir, weightsFile), w.Safetensors(typ))
		got, _ := converted(t, dir, ggmlfile.F16)
		sameFile(t, want, got, string(typ))
	}
	shards := t.TempDir()
	modeltest.Texts(t, shards)
	w.Shards(t, shards, weightfile.BF16)
	got, f := converted(t, shards, ggmlfile.F16)
	sameFile(t, want, got, "shards")
	assert.Len(t, f.Sources, 2)
	for _, c := range []struct {
		version uint32
		typ     weightfile.Type
	}{
		{2, weightfile.F32}, {3, weightfile.I8}, {4, weightfile.I16}, {5, weightfile.F16}, {6, weightfile.BF16}, {6, weightfile.I8},
	} {
		ct2 := t.TempDir()
		w.CT2Folder(t, ct2, c.version, c.typ)
		got, f := converted(t, ct2, ggmlfile.F16)
		sameFile(t, want, got, string(c.typ))
		assert.Equal(t, [][2]int{{0, 1}, {1, 0}}, f.AlignmentHeads)
	}
}

// TestTokenizerAlone reads the vocabulary from tokenizer.json, where new
// versions of transformers keep it.
func TestTokenizerAlone(t *testing.T) {
	_, dir := reference(t)
	want, _ := converted(t, dir, ggmlfile.F16)
	var all tokenizer
	all.Model.Vocabulary = map[string]int{}
	for i, text := range modeltest.Tokens() {
		if i < 50257 {
			all.Model.Vocabulary[text] = i
			continue
		}
		all.Added = append(all.Added, struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		}{i, text})
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	modeltest.Place(t, filepath.Join(dir, "tokenizer.json"), text)
	basic, err := json.Marshal(all.Model.Vocabulary)
	require.NoError(t, err)
	modeltest.Place(t, filepath.Join(dir, "vocab.json"), basic)
	got, _ := converted(t, dir, ggmlfile.F16)
	sameFile(t, want, got, "tokenizer.json beside a vocab.json without special tokens")
	require.NoError(t, os.Remove(filepath.Join(dir, "vocab.json")))
	got, _ = converted(t, dir, ggmlfile.F16)
	sameFile(t, want, got, "tokenizer.json")
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	text, err = json.Marshal(modeltest.Tokens())
	require.NoError(t, err)
	modeltest.Place(t, filepath.Join(dir, "vocabulary.json"), text)
	got, _ = converted(t, dir, ggmlfile.F16)
	sameFile(t, want, got, "vocabulary.json")
}

// TestAdaptersAreRefused: weights next to an adapter would be converted without
// the adapter.
func TestAdaptersAreRefused(t *testing.T) {
	_, dir := reference(t)
	alone := t.TempDir()
	for _, dir := range []string{dir, alone} {
		modeltest.Place(t, filepath.Join(dir, adapterWeights), nil)
		modeltest.Place(t, filepath.Join(dir, adapterConfig), []byte(`{"peft_type": "LORA"}`))
		_, err := Open(dir)
		require.ErrorIs(t, err, models.ErrUnsupported)
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, "merge_and_unload")
	}
	assert.Equal(t, layoutAdapter, Find(alone))
}

// TestQuantizedFileEqualsTheQuantized16Bits compares a quantized file with the
// f16 file quantized row by row.
func TestQuantizedFileEqualsTheQuantized16Bits(t *testing.T) {
	w, dir := reference(t)
	for _, typ := range []ggmlfile.Type{ggmlfile.Q8_0, ggmlfile.Q5_0} {
		tensor, file, _ := typ.Numbers()
		got, _ := converted(t, dir, typ)
		h, err := ggmlfile.Check(bytes.NewReader(got), int64(len(got)), false)
		require.NoError(t, err)
		assert.Equal(t, int32(file), h.Type)
		row := w["model.decoder.embed_tokens.weight"].Values
		require.True(t, bytes.Contains(got, ggmlfile.AppendValues([]byte("decoder.token_embedding.weight"), row, tensor)), "%s", typ)
	}
}

// TestInvalidFoldersAreRefused changes one detail of a valid folder.
func TestInvalidFoldersAreRefused(t *testing.T) {
	edit := func(name, text string) func(modeltest.Weights, string) {
		return func(_ modeltest.Weights, dir string) { modeltest.Place(t, filepath.Join(dir, name), []byte(text)) }
	}
	config := func(more string) func(modeltest.Weights, string) {
		return edit(configFile, `{"model_type": "whisper", "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2, `+more+`}`)
	}
	add := func(name string, m modeltest.Matrix) func(modeltest.Weights, string) {
		return func(w modeltest.Weights, _ string) { w[name] = m }
	}
	ones := modeltest.Matrix{Shape: []int64{modeltest.Width}, Values: slices.Repeat([]float32{1}, modeltest.Width)}
	for name, c := range map[string]struct {
		change func(w modeltest.Weights, dir string)
		is     error
		says   string
	}{
		"untied projection": {func(w modeltest.Weights, _ string) {
			m := w["model.decoder.embed_tokens.weight"]
			other := slices.Clone(m.Values)
			other[len(other)-1] += 1
			w["proj_out.weight"] = modeltest.Matrix{Shape: m.Shape, Values: other}
		}, models.ErrUnsupported, "differs from the embedding"},
		"tied projection":    {func(w modeltest.Weights, _ string) { w["proj_out.weight"] = w["model.decoder.embed_tokens.weight"] }, nil, ""},
		"zero bias of a key": {add("model.encoder.layers.0.self_attn.k_proj.bias", modeltest.Matrix{Shape: ones.Shape, Values: make([]float32, modeltest.Width)}), nil, ""},
		"bias of a key":      {add("model.encoder.layers.0.self_attn.k_proj.bias", ones), models.ErrUnsupported, "expected zeros where a Whisper model has no bias"},
		"another tensor":     {add("model.encoder.gate.weight", ones), models.ErrUnsupported, `found a tensor "model.encoder.gate.weight"`},
		"a tensor less":      {func(w modeltest.Weights, _ string) { delete(w, "model.decoder.layers.1.fc2.bias") }, models.ErrBroken, "expected a tensor model.decoder.layers.1.fc2.bias"},
		"another shape":      {add("model.decoder.layer_norm.bias", modeltest.Matrix{Shape: []int64{2}, Values: []float32{1, 2}}), models.ErrBroken, "expected shape [32], found [2]"},
		"no number": {func(w modeltest.Weights, _ string) {
			m := w["model.encoder.layers.0.fc1.weight"]
			m.Values = slices.Clone(m.Values)
			m.Values[7] = float32(math.NaN())
			w["model.encoder.layers.0.fc1.weight"] = m
		}, models.ErrBroken, "fc1.weight: expected finite numbers, found NaN"},
		"resized vocabulary": {func(w modeltest.Weights, _ string) {
			m := w["model.decoder.embed_tokens.weight"]
			w["model.decoder.embed_tokens.weight"] = modeltest.Matrix{Shape: []int64{51870, modeltest.Width}, Values: append(slices.Clone(m.Values), make([]float32, 5*modeltest.Width)...)}
		}, models.ErrUnsupported, "vocabulary without added or missing tokens (n_vocab) of 51864 to 51866, found 51870"},
		"added tokens": {edit("added_tokens.json", `{"<|mine|>": 51865}`), models.ErrUnsupported, `tokens were added, the first is "<|mine|>"`},
		"added token in place of a language": {func(w modeltest.Weights, dir string) {
			m := w["model.decoder.embed_tokens.weight"]
			w["model.decoder.embed_tokens.weight"] = modeltest.Matrix{Shape: []int64{51866, modeltest.Width}, Values: append(slices.Clone(m.Values), make([]float32, modeltest.Width)...)}
			text, err := json.Marshal(append(modeltest.Tokens(), "<|mine|>"))
			require.NoError(t, err)
			modeltest.Place(t, filepath.Join(dir, "vocabulary.json"), text)
		}, models.ErrUnsupported, `tokens were added, the first is "<|mine|>"`},
		"two of a token": {edit("added_tokens.json", `{"<|mine|>": 5}`), models.ErrBroken, `token 5 is both "<|mine|>" and "Ġtoken5"`},
		"no end of text": {edit("vocab.json", `{"a": 0, "b": 50257}`), models.ErrUnsupported, "expected <|endoftext|> as token 50257"},
		"vocabulary":     {edit("vocab.json", `[1`), models.ErrBroken, "vocab.json"},
		"scaled":         {config(`"scale_embedding": true`), models.ErrUnsupported, "unscaled embeddings"},
		"activation":     {config(`"activation_function": "silu"`), models.ErrUnsupported, `"silu"`},
		"heads":          {edit(configFile, `{"model_type": "whisper", "encoder_layers": 2, "decoder_layers": 2}`), models.ErrBroken, "of 1 to 128, found 0"},
		"layers":         {edit(configFile, `{"model_type": "whisper", "encoder_layers": 200, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}`), models.ErrBroken, "of 1 to 128, found 200"},
		"generation":     {edit("generation_config.json", `{"alignment_heads": 3}`), models.ErrBroken, "generation_config.json"},
		"another kind":   {edit(configFile, `{"model_type": "wav2vec2"}`), models.ErrMissing, "found neither"},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := modeltest.WhisperWeights(), t.TempDir()
			modeltest.Texts(t, dir)
			c.change(w, dir)
			modeltest.Place(t, filepath.Join(dir, weightsFile), w.Safetensors(weightfile.F32))
			f, err := Open(dir)
			if err == nil {
				err = f.Write(io.Discard, ggmlfile.Q8_0, nil)
				f.Close()
			}
			if c.is == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, dir)
		})
	}
}

// TestNotesListLikelyDefects: the notes list the likely defects of a fine-tuned
// model.
func TestNotesListLikelyDefects(t *testing.T) {
	w, dir := modeltest.WhisperWeights(), t.TempDir()
	modeltest.Texts(t, dir)
	large := w["model.encoder.layers.0.fc1.weight"]
	large.Values = slices.Clone(large.Values)
	large.Values[3], large.Values[40] = 70000, -1e6
	w["model.encoder.layers.0.fc1.weight"] = large
	modeltest.Place(t, filepath.Join(dir, weightsFile), w.Safetensors(weightfile.BF16))
	modeltest.Place(t, filepath.Join(dir, "generation_config.json"), []byte(`{"alignment_heads": [[2, 0]]}`))
	_, f := converted(t, dir, ggmlfile.F16)
	assert.Nil(t, f.AlignmentHeads)
	notes := strings.Join(f.Notes, "\n")
	assert.Contains(t, notes, "layer 2, head 0 is named, the decoder has 2 layers of 2 heads")
	assert.Contains(t, notes, "trained on texts without times")
	assert.Contains(t, notes, "2 numbers were too large for 16 bits")
	require.NoError(t, os.Remove(filepath.Join(dir, "generation_config.json")))
	_, f = converted(t, dir, ggmlfile.F16)
	assert.Contains(t, strings.Join(f.Notes, "\n"), "no alignment heads are named")
	assert.NotContains(t, strings.Join(f.Notes, "\n"), "<|0.00|>", "the special tokens are not listed")

	vocabulary, err := json.Marshal(modeltest.Tokens()[:50364]) // up to <|notimestamps|>
	require.NoError(t, err)
	modeltest.Place(t, filepath.Join(dir, "vocabulary.json"), vocabulary)
	_, f = converted(t, dir, ggmlfile.F16)
	assert.Contains(t, strings.Join(f.Notes, "\n"), "not the time <|0.00|>")
}

func TestSnapshot(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "models--Systran--faster-whisper-base")
	commit := filepath.Join(cache, "snapshots", "abc123")
	require.NoError(t, os.MkdirAll(commit, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "refs"), 0o755))
	modeltest.Place(t, filepath.Join(cache, "refs", "main"), []byte("abc123\n"))
	modeltest.Place(t, filepath.Join(commit, configFile), []byte("{}"))
	for _, dir := range []string{cache, commit} {
		files, name := Snapshot(dir)
		assert.Equal(t, commit, files)
		assert.Equal(t, "faster-whisper-base", name)
	}
	modeltest.Place(t, filepath.Join(cache, "refs", "main"), []byte("abc123"+strings.Repeat(" ", maxCommit)))
	files, _ := Snapshot(cache)
	assert.Equal(t, cache, files, "too long for a commit")
	_, name := Snapshot(filepath.Join(cache, ".."))
	assert.Equal(t, filepath.Base(filepath.Dir(cache)), name)
}

func TestWriteEndsWithTheContext(t *testing.T) {
	_, dir := reference(t)
	f, err := Open(dir)
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, f.Write(io.Discard, ggmlfile.F16, func(float64) error { return ctx.Err() }), context.Canceled)
	require.ErrorContains(t, f.Write(io.Discard, "q3", nil), `found "q3"`)
}

// TestDamagedFiles converts 200 files of each kind, each truncated or with
// changed bytes: the result is an error of this package or a model with other
// numbers, in no more memory than for a valid file.
func TestDamagedFiles(t *testing.T) {
	w := modeltest.WhisperWeights()
	hf, ct2 := t.TempDir(), t.TempDir()
	modeltest.Texts(t, hf)
	modeltest.Place(t, filepath.Join(hf, "vocabulary.txt"), []byte(strings.Join(modeltest.Tokens(), "\n"))) // is read faster
	w.CT2Folder(t, ct2, 6, weightfile.I8)
	good := w.Safetensors(weightfile.F16)
	modeltest.Place(t, filepath.Join(hf, weightsFile), good)
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name, dir, file string
		head            int // number of leading bytes in which most changes are made
	}{
		{"safetensors", hf, weightsFile, 9000},
		{"CTranslate2", ct2, modelBin, 3000},
		{"configuration", hf, configFile, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(c.dir, c.file)
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			defer modeltest.Place(t, path, whole)
			refused := 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range 200 {
				damage(t, random, path, whole, c.head, i)
				f, err := Open(c.dir)
				if err == nil && i%20 == 0 {
					err = f.Write(io.Discard, ggmlfile.Q8_0, nil)
				}
				f.Close()
				if err == nil {
					continue
				}
				refused++
				require.True(t, errors.Is(err, models.ErrBroken) || errors.Is(err, models.ErrMissing), "%v", err)
				require.ErrorContains(t, err, filepath.Dir(path))
			}
			runtime.ReadMemStats(&after)
			assert.Greater(t, refused, 60)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200*(40<<20)), "bytes in all, 200 good files included")
		})
	}
}

// damage cuts a file, or changes a few of its bytes.
func damage(t testing.TB, random *rand.Rand, path string, whole []byte, head, i int) {
	t.Helper()
	if i%3 == 0 {
		modeltest.Place(t, path, whole)
		require.NoError(t, os.Truncate(path, random.Int64N(int64(len(whole)))))
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	if i%3 == 1 {
		require.NoError(t, file.Truncate(int64(len(whole)))) // the removed bytes are zeros now, except in the head
	}
	_, err = file.WriteAt(whole[:min(head, len(whole))], 0)
	require.NoError(t, err)
	for range 1 + random.IntN(3) {
		_, err = file.WriteAt([]byte{byte(random.Uint32())}, random.Int64N(int64(min(head, len(whole)))))
		require.NoError(t, err)
	}
}

// TestRealModelsEqualWhisperCpps converts real models if OTOGRAPH_REAL names a
// folder with them and with whisper.cpp's files of the same weights.
func TestRealModelsEqualWhisperCpps(t *testing.T) {
	dir := os.Getenv("OTOGRAPH_REAL")
	if dir == "" {
		t.Skip("OTOGRAPH_REAL is not set: no published models at hand")
	}
	for _, name := range []string{"base", "tiny.en"} {
		for typ, file := range map[ggmlfile.Type]string{ggmlfile.F16: "ggml-" + name + ".bin", ggmlfile.Q8_0: "ggml-" + name + "-q8_0.bin"} {
			got, f := converted(t, filepath.Join(dir, "ct2-"+name), typ)
			want, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			const head = 48 + 8 // includes the file's type, which has two numberings
			filters := head + 4*int(f.Header.Mels)*201
			assert.Equal(t, want[:44], got[:44])
			sameFile(t, want[filters:], got[filters:], file)
			require.NotEmpty(t, f.AlignmentHeads)
		}
	}
}
