package library

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// parts maps a model's parts to file names.
func parts(m *models.Model) map[models.Part]string {
	out := map[models.Part]string{}
	for _, f := range m.Files {
		out[f.Part] = f.Name
	}
	return out
}

func TestFolderWithoutManifest(t *testing.T) {
	withData := modeltest.NeMoCTC().Constant("w", onnxfile.ExternalTensor(onnxfile.Float32, []int64{4}, "model.onnx.data", 16)).Bytes()
	dir := modeltest.Folder(t, map[string][]byte{
		"ggml-base.en.bin":           modeltest.Whisper(51864),
		"silero_vad.onnx":            modeltest.SileroV5().Bytes(),
		"speaker.onnx":               modeltest.WeSpeaker().Bytes(),
		"plda.json":                  []byte("{}"),
		"tagger/model.onnx":          modeltest.YAMNet().Bytes(),
		"parakeet/encoder.int8.onnx": modeltest.TDTEncoder().Bytes(),
		"parakeet/decoder.int8.onnx": modeltest.TDTDecoder().Bytes(),
		"parakeet/joiner.int8.onnx":  modeltest.TDTJoiner().Bytes(),
		"parakeet/tokens.txt":        []byte("<blk> 0\n"),
		"sense/model.onnx":           modeltest.SenseVoice().Bytes(),
		"sense/model.int8.onnx":      modeltest.SenseVoice().Bytes(),
		"sense/tokens.txt":           []byte("<unk> 0\n"),
		"sense/lm.arpa":              []byte("\\data\\"),
		"parakeet/lm.arpa":           []byte("\\data\\"),
		"nemo/model.onnx":            withData,
		"nemo/model.onnx.data":       make([]byte, 16),
		"nemo/vocab.txt":             []byte("<blk> 0\n"),
		"pyannote.onnx":              onnxfile.NewGraph().Input("x", onnxfile.Float32, "N", 1, "T").Output("y", onnxfile.Float32, "N", "F", 7).Bytes(),
		"Cnn14.pth":                  []byte("PK\x03\x04 and so on"),
		"notes.txt":                  []byte("hello"),
		"other.bin":                  []byte("not a model at all"),
		".hidden.onnx":               []byte("junk"),
	})
	set, err := OpenDir(dir)
	require.NoError(t, err)
	assert.Equal(t, filepath.Base(dir), set.Name)
	for _, role := range models.Roles() {
		_, err := set.Need(role)
		require.NoError(t, err)
	}
	standard, _ := set.Role(models.RoleStandard)
	assert.Equal(t, []string{"en"}, standard.Languages)
	assert.Equal(t, "ggml-base.en", standard.Name)
	tagger, _ := set.Role(models.RoleTagger)
	assert.Equal(t, "tagger", tagger.Name, "a model in a folder of its own has the folder's name")

	byName := map[string]*models.Model{}
	for _, m := range set.All(models.RoleOptimized) {
		byName[m.Name] = m
	}
	require.Len(t, byName, 3)
	assert.Equal(t, map[models.Part]string{models.PartEncoder: "encoder.int8.onnx", models.PartDecoder: "decoder.int8.onnx", models.PartJoiner: "joiner.int8.onnx", models.PartTokens: "tokens.txt", models.PartLM: "lm.arpa"}, parts(byName["parakeet"]))
	assert.Equal(t, map[models.Part]string{models.PartModel: "model.int8.onnx", models.PartTokens: "tokens.txt", models.PartLM: "lm.arpa"}, parts(byName["sense"]), "of two precisions the 8-bit one")
	assert.Equal(t, map[models.Part]string{models.PartModel: "model.onnx", models.PartTokens: "vocab.txt", models.PartData: "model.onnx.data"}, parts(byName["nemo"]))
	m, ok := set.OptimizedFor("ja")
	require.True(t, ok)
	assert.Equal(t, "sense", m.Name)

	embedder, _ := set.Role(models.RoleEmbedder)
	assert.Equal(t, map[models.Part]string{models.PartModel: "speaker.onnx", models.PartPLDA: "plda.json"}, parts(embedder))
	segmenter, _ := set.Role(models.RoleSegmenter)
	assert.Equal(t, models.ContractPyannote, segmenter.Contract)

	require.Len(t, set.Ignored, 2)
	all := ""
	for _, why := range set.Ignored {
		all += why.Error() + "\n"
	}
	for _, name := range []string{"Cnn14.pth", "other.bin"} {
		assert.Contains(t, all, name)
	}
}

func TestFolderErrorsAreSpecific(t *testing.T) {
	cases := map[string]struct {
		files map[string][]byte
		is    error
		says  []string
	}{
		"two for one role": {map[string][]byte{"a.bin": modeltest.Whisper(51865), "b.bin": modeltest.Whisper(51865)}, ErrAmbiguous, []string{"role standard", "a.bin, b.bin", "--standard-model"}},
		"cut model":        {map[string][]byte{"vad.onnx": modeltest.SileroV5().Bytes()[:50]}, models.ErrBroken, []string{"vad.onnx", "expected"}},
		"cut whisper":      {map[string][]byte{"w.bin": modeltest.Whisper(51865)[:80]}, models.ErrBroken, []string{"w.bin"}},
		"no tokens":        {map[string][]byte{"ctc.onnx": modeltest.NeMoCTC().Bytes()}, models.ErrMissing, []string{"ctc.onnx", "role optimized", "tokens"}},
		"no joiner":        {map[string][]byte{"encoder.onnx": modeltest.TDTEncoder().Bytes(), "decoder.onnx": modeltest.TDTDecoder().Bytes(), "tokens.txt": nil}, models.ErrMissing, []string{"encoder.onnx", "joiner"}},
		"no data file": {map[string][]byte{
			"e.onnx": modeltest.NeMoCTC().Constant("w", onnxfile.ExternalTensor(onnxfile.Float32, []int64{4}, "w.data", 16)).Bytes(), "tokens.txt": nil,
		}, models.ErrMissing, []string{"w.data", "e.onnx"}},
		"nameless embedder": {map[string][]byte{"emb.onnx": modeltest.Bare().Bytes()}, ErrAmbiguous, []string{"emb.onnx", "wespeaker", "otograph.json", "fbank float32[?,?,80]"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := OpenDir(modeltest.Folder(t, c.files))
			require.ErrorIs(t, err, c.is)
			for _, s := range c.says {
				assert.ErrorContains(t, err, s)
			}
		})
	}
	_, err := OpenDir(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, models.ErrMissing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	file := filepath.Join(t.TempDir(), "f")
	modeltest.Place(t, file, nil)
	_, err = OpenDir(file)
	require.ErrorIs(t, err, models.ErrBroken)
}

func TestManifestTakesPrecedence(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	dir := modeltest.Folder(t, map[string][]byte{
		"a.bin":           modeltest.Whisper(51865),
		"b.bin":           modeltest.Whisper(51865),
		"emb.onnx":        modeltest.Bare().Bytes(),
		"de/model.onnx":   modeltest.NeMoCTC().Bytes(),
		"de/units.txt":    []byte("x 0"),
		"many/model.onnx": modeltest.NeMoCTC().Bytes(),
		"many/tokens.txt": []byte("x 0"),
		"panns.onnx":      modeltest.PANNs().Bytes(),
		"otograph.json": []byte(`{"name": "mine", "roles": {
			"standard": {"file": "b.bin", "license": "MIT", "sha256": {"b.bin": "` + sum + `"}},
			"embedder": {"file": "emb.onnx", "contract": "speechbrain-ecapa", "same_speaker": 0.25, "one_voice": 0.6, "two_voices": 0.2},
			"optimized": [
				{"files": {"model": "many/model.onnx", "tokens": "many/tokens.txt"}, "languages": ["de", "fr", "en"], "window_seconds": 20},
				{"files": {"model": "de/model.onnx", "tokens": "de/units.txt"}, "languages": ["de"]}
			],
			"tagger": {"name": "cnn", "file": "panns.onnx", "sample_rate": 16000}
		}}`),
	})
	set, err := OpenDir(dir)
	require.NoError(t, err)
	assert.Equal(t, "mine", set.Name)
	standard, _ := set.Role(models.RoleStandard)
	assert.Equal(t, []models.File{{Part: models.PartModel, Name: "b.bin", Path: filepath.Join(dir, "b.bin"), Size: int64(len(modeltest.Whisper(51865))), SHA256: sum}}, standard.Files)
	embedder, _ := set.Role(models.RoleEmbedder)
	assert.Equal(t, models.ContractSpeechBrain, embedder.Contract)
	assert.Equal(t, []float64{0.25, 0.6, 0.2}, []float64{embedder.SameSpeaker, embedder.OneVoice, embedder.TwoVoices})
	tagger, _ := set.Role(models.RoleTagger)
	assert.Equal(t, "cnn", tagger.Name)
	assert.Equal(t, 16000, tagger.SampleRate)
	m, _ := set.OptimizedFor("de")
	assert.Equal(t, "de", m.Name, "the model for one language beats the one for many")
	m, _ = set.OptimizedFor("fr")
	assert.Equal(t, "many", m.Name)
	assert.Equal(t, 20.0, m.WindowSeconds)
	_, ok := set.OptimizedFor("zh")
	assert.False(t, ok)

	// A file named on the command line uses its entry in the folder's manifest.
	m, err = OpenFile(models.RoleEmbedder, filepath.Join(dir, "emb.onnx"))
	require.NoError(t, err)
	assert.Equal(t, models.ContractSpeechBrain, m.Contract)
}

func TestSampleRateIsReadFromTheFile(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{"a.onnx": modeltest.PANNs().Meta("sample_rate", "32000").Bytes(), "b.onnx": modeltest.PANNs().Bytes()})
	for name, want := range map[string]int{"a.onnx": 32000, "b.onnx": 0} {
		m, err := OpenFile(models.RoleTagger, filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, m.SampleRate, name)
	}
}

func TestManifestErrorsNameTheField(t *testing.T) {
	cases := map[string]string{
		`{`:                                    "unexpected EOF",
		`[]`:                                   "cannot unmarshal",
		`{"rolls": {}}`:                        "rolls",
		`{"roles": {"driver": {"file": "a"}}}`: `role "driver"`,
		`{"roles": {"VAD": {"file": "a"}}}`:    `expected "vad"`,
		`{"roles": {"vad": []}}`:               "empty list",
		`{"roles": {"vad": [{"file": "a"}, {"file": "b"}]}}`:                          "expected one model, found 2",
		`{"roles": {"vad": {"file": "a", "contrakt": "x"}}}`:                          "contrakt",
		`{"roles": {"vad": {"file": "a", "contract": "yamnet"}}}`:                     "silero-v5",
		`{"roles": {"vad": {}}}`:                                                      "files: expected at least one",
		`{"roles": {"vad": {"file": "a", "files": {"model": "b"}}}}`:                  "found both",
		`{"roles": {"vad": {"files": {"tokens": "b"}}}}`:                              `expected a "model"`,
		`{"roles": {"vad": {"files": {"wheel": "b"}}}}`:                               `part "wheel"`,
		`{"roles": {"vad": {"file": "../a.onnx"}}}`:                                   "inside the folder",
		`{"roles": {"vad": {"file": "/etc/a.onnx"}}}`:                                 "inside the folder",
		`{"roles": {"vad": {"file": "a//b.onnx"}}}`:                                   "inside the folder",
		`{"roles": {"vad": {"file": "a\\b.onnx"}}}`:                                   "inside the folder",
		`{"roles": {"vad": {"file": "a", "sha256": {"a": "zz"}}}}`:                    "64 hexadecimal",
		`{"roles": {"vad": {"file": "a", "languages": ["English"]}}}`:                 "ISO 639",
		`{"roles": {"vad": {"file": "a", "window_seconds": -1}}}`:                     "window_seconds",
		`{"roles": {"vad": {"file": "a", "sample_rate": 44}}}`:                        "sample_rate",
		`{"roles": {"embedder": {"file": "a", "same_speaker": 1}}}`:                   "same_speaker",
		`{"roles": {"embedder": {"file": "a", "one_voice": 0.4, "two_voices": 0.4}}}`: "two_voices, one_voice: expected two cosines in rising order",
		`{"roles": {"optimized": [{"file": "a.onnx"}, {"file": "a.int8.onnx"}]}}`:     "used twice",
		`{"roles": {}} {}`: "unexpected text after the JSON value",
	}
	for text, says := range cases {
		_, err := OpenDir(modeltest.Folder(t, map[string][]byte{manifestName: []byte(text)}))
		require.ErrorIs(t, err, models.ErrBroken, text)
		assert.ErrorContains(t, err, says, text)
		assert.ErrorContains(t, err, manifestName)
	}
	_, err := OpenDir(modeltest.Folder(t, map[string][]byte{manifestName: make([]byte, maxManifest+1)}))
	require.ErrorIs(t, err, models.ErrBroken)
}

func TestWrongModelErrorsStateRoleExpectationAndFinding(t *testing.T) {
	for _, role := range models.Roles() {
		for other, data := range map[models.Role][]byte{
			models.RoleStandard: modeltest.Whisper(51865), models.RoleVAD: modeltest.SileroV5().Bytes(), models.RoleEmbedder: modeltest.WeSpeaker().Bytes(), models.RoleTagger: modeltest.YAMNet().Bytes(),
		} {
			if other == role {
				continue
			}
			dir := modeltest.Folder(t, map[string][]byte{"file.bin": data})
			for _, open := range []func() error{
				func() error { _, err := OpenFile(role, filepath.Join(dir, "file.bin")); return err },
				func() error {
					modeltest.Place(t, filepath.Join(dir, manifestName), []byte(`{"roles": {"`+string(role)+`": {"file": "file.bin"}}}`))
					_, err := OpenDir(dir)
					return err
				},
			} {
				err := open()
				require.ErrorIs(t, err, models.ErrBroken)
				for _, s := range []string{"file.bin", "role " + string(role), "expected", models.ContractsOf(role)[0], "found a model for role " + string(other)} {
					assert.ErrorContains(t, err, s)
				}
			}
		}
		_, err := OpenFile(role, filepath.Join(t.TempDir(), "gone.onnx"))
		require.ErrorIs(t, err, models.ErrMissing)
		assert.ErrorContains(t, err, "gone.onnx")
		assert.ErrorContains(t, err, string(role))
	}
	dir := modeltest.Folder(t, map[string][]byte{"t.onnx": modeltest.YAMNet().Bytes(), manifestName: []byte(`{"roles": {"tagger": {"file": "t.onnx", "contract": "ced"}}}`)})
	_, err := OpenDir(dir)
	require.ErrorIs(t, err, models.ErrBroken)
	assert.ErrorContains(t, err, "expected contract ced, found yamnet")
	odd := onnxfile.NewGraph().Input("audio", onnxfile.Float32, "b", "n", 1).Output("sounds", onnxfile.Float32, "b", "k").Bytes()
	dir = modeltest.Folder(t, map[string][]byte{"odd.onnx": odd, manifestName: []byte(`{"roles": {"tagger": {"file": "odd.onnx", "contract": "panns"}}}`)})
	set, err := OpenDir(dir)
	require.NoError(t, err, "the manifest decides for a graph of unknown shape")
	assert.Equal(t, models.ContractPANNs, set.Models[0].Contract)
	modeltest.Place(t, filepath.Join(dir, "odd.onnx"), []byte("<!DOCTYPE html>"))
	_, err = OpenDir(dir)
	require.ErrorIs(t, err, models.ErrBroken, "but a web page never is")
	_, err = OpenFile("driver", "x")
	require.ErrorContains(t, err, "driver")
}

func TestLoadPrefersFilesThenFolderThenFallback(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{"vad.onnx": modeltest.SileroV5().Bytes(), "tagger.onnx": modeltest.YAMNet().Bytes()})
	other := modeltest.Folder(t, map[string][]byte{"mine.onnx": modeltest.SileroV5().Bytes(), "ctc.onnx": modeltest.NeMoCTC().Bytes(), "ctc-tokens.txt": nil, "tokens.txt": nil})
	fallback := &models.Set{Name: "demo", Models: []models.Model{
		{Role: models.RoleVAD, Name: "demo-vad", Demo: true}, {Role: models.RoleStandard, Name: "demo-whisper", Demo: true},
	}}
	set, err := Load{Files: map[models.Role]string{models.RoleVAD: filepath.Join(other, "mine.onnx"), models.RoleOptimized: filepath.Join(other, "ctc.onnx")}, Dir: dir, Fallback: fallback}.Open()
	require.NoError(t, err)
	names := map[models.Role]string{}
	for _, m := range set.Models {
		names[m.Role] = m.Name
	}
	assert.Equal(t, map[models.Role]string{models.RoleVAD: "mine", models.RoleTagger: "tagger", models.RoleOptimized: "ctc", models.RoleStandard: "demo-whisper"}, names)
	ctc, _ := set.Role(models.RoleOptimized)
	assert.Equal(t, "ctc-tokens.txt", parts(ctc)[models.PartTokens], "the token file of the model's own name")
	assert.Equal(t, filepath.Base(dir), set.Name)

	gone := filepath.Join(dir, "gone")
	_, err = Load{Dir: gone, Fallback: fallback}.Open()
	require.ErrorIs(t, err, models.ErrMissing, "a named folder must exist")
	set, err = Load{Dir: gone, DirOptional: true, Fallback: fallback}.Open()
	require.NoError(t, err)
	assert.Len(t, set.Models, 2)
	broken := modeltest.Folder(t, map[string][]byte{"vad.onnx": []byte("junk")})
	_, err = Load{Dir: broken, DirOptional: true, Fallback: fallback}.Open()
	require.ErrorIs(t, err, models.ErrBroken, "a broken model is an error, never a fallback")
	_, err = Load{Files: map[models.Role]string{"driver": "x"}}.Open()
	require.Error(t, err)

	// A folder in place of a file.
	set, err = Load{Files: map[models.Role]string{models.RoleTagger: dir}}.Open()
	require.NoError(t, err)
	assert.Equal(t, "tagger", set.Models[0].Name)
}

func TestManifestRoundTrip(t *testing.T) {
	m := &manifest{Name: "x", Roles: map[string]oneOrMany[entry]{
		"vad":       {{Model: models.Model{Name: "v"}, Files: map[models.Part]string{models.PartModel: "v.onnx"}}},
		"optimized": {{Model: models.Model{Name: "a"}, Files: map[models.Part]string{models.PartModel: "a.onnx", models.PartTokens: "t"}}, {Model: models.Model{Name: "b"}, Files: map[models.Part]string{models.PartModel: "b.onnx"}}},
	}}
	dir := t.TempDir()
	require.NoError(t, writeJSON(filepath.Join(dir, manifestName), m))
	got, err := readManifest(dir)
	require.NoError(t, err)
	assert.Equal(t, m, got)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name": "x", "roles": {"vad": {"file": "a.onnx"}, "optimized": [{"files": {"model": "m", "tokens": "t"}}]}}`))
	f.Add([]byte(`{"roles": {"vad": null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			return
		}
		for role, entries := range m.Roles {
			for _, e := range entries {
				for _, name := range e.Files {
					if !filepath.IsLocal(name) {
						t.Fatalf("role %s: %q leads out of the folder", role, name)
					}
				}
			}
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseManifest(again); err != nil {
			t.Fatalf("%s, written again: %v", again, err)
		}
	})
}

// A folder with a CTC model on samples in transformers' layout: config.json
// describes the network, preprocessor_config.json the preprocessing of the
// samples.
func TestFolderOfTransformers(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{
		"model.onnx":               onnxfile.NewGraph().Input("input_values", onnxfile.Float32, "N", "T").Output("logits", onnxfile.Float32, "N", "F", 32).Bytes(),
		"vocab.json":               []byte(`{"<pad>": 0, "|": 1}`),
		"config.json":              []byte(`{"model_type": "wav2vec2"}`),
		"preprocessor_config.json": []byte(`{"do_normalize": true}`),
	})
	set, err := OpenDir(dir)
	require.NoError(t, err)
	require.Len(t, set.Models, 1)
	assert.Equal(t, models.ContractWaveformCTC, set.Models[0].Contract)
	names := map[models.Part]string{}
	for _, f := range set.Models[0].Files {
		names[f.Part] = f.Name
	}
	assert.Equal(t, map[models.Part]string{models.PartModel: "model.onnx", models.PartTokens: "vocab.json", models.PartConfig: "preprocessor_config.json"}, names)
}
