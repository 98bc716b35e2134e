package library

import (
	"archive/tar"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// TestImportWhisperFolders imports models as users of faster-whisper and of
// transformers have them: by the folder, by the file with the weights, and as
// an archive.
func TestImportWhisperFolders(t *testing.T) {
	w := modeltest.WhisperWeights()
	root := t.TempDir()
	hf, ct2 := filepath.Join(root, "whisper-made"), filepath.Join(root, "faster-whisper-made")
	modeltest.Texts(t, hf)
	modeltest.Place(t, filepath.Join(hf, "model.safetensors"), w.Safetensors(weightfile.F16))
	w.CT2Folder(t, ct2, 6, weightfile.I8)

	s := &Store{Dir: t.TempDir()}
	var progress Progress
	s.Progress = func(p Progress) { progress = p }
	done, err := s.Import(t.Context(), hf, ImportOptions{Languages: []string{"de"}})
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, "whisper-made-q8_0", done[0].Name)
	assert.Equal(t, []string{"converted from safetensors of someone/whisper-made to q8_0"}, done[0].Notes)
	assert.Equal(t, progress.Total, progress.Done)
	assert.Equal(t, "ggml-whisper-made-q8_0.bin", progress.File)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, err := set.Need(models.RoleStandard)
	require.NoError(t, err)
	assert.Equal(t, "apache-2.0", m.License)
	assert.Equal(t, []string{"de"}, m.Languages)
	assert.Equal(t, [][2]int{{0, 1}, {1, 0}}, m.AlignmentHeads)
	text, err := os.ReadFile(filepath.Join(s.Dir, manifestName))
	require.NoError(t, err)
	var recorded manifest
	require.NoError(t, json.Unmarshal(text, &recorded))
	sum, _, err := fetch.HashFile(filepath.Join(hf, "model.safetensors"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"model.safetensors": sum}, recorded.Roles["standard"][0].SourceSHA256)
	assert.Equal(t, "safetensors of someone/whisper-made", recorded.Roles["standard"][0].Source)
	checks, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, checks, 1)
	assert.Equal(t, StatusOK, checks[0].Status)
	left, err := os.ReadDir(filepath.Join(s.Dir, partials))
	require.NoError(t, err)
	assert.Len(t, left, 1, "only the lock stays")

	want := done[0].Files[0].SHA256
	archive := filepath.Join(root, "packed.tar")
	modeltest.Place(t, archive, tarball(t, func(w *tar.Writer) {
		for _, name := range []string{"model.bin", "vocabulary.txt", "config.json"} {
			data, err := os.ReadFile(filepath.Join(ct2, name))
			require.NoError(t, err)
			addFile(t, w, "faster/"+name, data)
		}
	}))
	for source, name := range map[string]string{
		filepath.Join(hf, "model.safetensors"): "whisper-made-q8_0", ct2: "faster-whisper-made-q8_0", filepath.Join(ct2, "model.bin"): "faster-whisper-made-q8_0", archive: "packed",
	} {
		s := &Store{Dir: t.TempDir()}
		done, err := s.Import(t.Context(), source, ImportOptions{License: "MIT"})
		require.NoError(t, err)
		require.Len(t, done, 1)
		assert.Equal(t, name, done[0].Name)
		assert.Equal(t, want, done[0].Files[0].SHA256, source)
		assert.NotContains(t, done[0].Notes[0], "unpacked")
		if source == archive {
			assert.Equal(t, "converted from CTranslate2 of packed.tar to q8_0", done[0].Notes[0])
		}
		assert.NotContains(t, strings.Join(done[0].Notes, "\n"), "license")
	}
}

// TestOpeningAWhisperFolderSuggestsImport opens a folder that must be imported
// first.
func TestOpeningAWhisperFolderSuggestsImport(t *testing.T) {
	ct2 := t.TempDir()
	modeltest.WhisperWeights().CT2Folder(t, ct2, 6, weightfile.F16)
	_, err := OpenDir(ct2)
	require.ErrorIs(t, err, models.ErrUnsupported)
	require.ErrorContains(t, err, "found Whisper as CTranslate2: run `otograph models import "+ct2+"`")
	_, err = OpenFile(models.RoleStandard, ct2)
	require.ErrorContains(t, err, "otograph models import "+ct2)
	_, err = OpenFile(models.RoleStandard, filepath.Join(ct2, "model.bin"))
	require.ErrorContains(t, err, "a Whisper model of CTranslate2: run `otograph models import FOLDER`")
}

// TestFolderWithOtherModelsOpens opens folders with files of a Whisper model or
// of an adapter, next to a recognized model or alone.
func TestFolderWithOtherModelsOpens(t *testing.T) {
	file, beside := modeltest.SileroV5().Bytes(), t.TempDir()
	modeltest.WhisperWeights().CT2Folder(t, beside, 6, weightfile.F16)
	modeltest.Place(t, filepath.Join(beside, "vad.onnx"), file)
	lora := []byte(`{"peft_type": "LORA", "lora_alpha": 8}`)
	for name, dir := range map[string]string{
		"weights": beside,
		"adapter": modeltest.Folder(t, map[string][]byte{"vad.onnx": file, "adapter_config.json": lora}),
	} {
		set, err := OpenDir(dir)
		require.NoError(t, err, name)
		require.Len(t, set.Models, 1)
		assert.Equal(t, models.RoleVAD, set.Models[0].Role)
	}
	set, err := OpenDir(modeltest.Folder(t, map[string][]byte{"adapter_config.json": lora}))
	require.NoError(t, err)
	assert.Empty(t, set.Models)
	adapter := modeltest.Folder(t, map[string][]byte{"adapter_config.json": lora, "adapter_model.safetensors": nil})
	_, err = OpenDir(adapter)
	require.ErrorContains(t, err, "found Whisper as adapter")
	_, err = (&Store{Dir: t.TempDir()}).Import(t.Context(), adapter, ImportOptions{})
	require.ErrorContains(t, err, "merge it into its base model with PEFT")
}

func TestImportWhisperFolderRefuses(t *testing.T) {
	w, hf := modeltest.WhisperWeights(), t.TempDir()
	modeltest.Texts(t, hf)
	delete(w, "model.encoder.layer_norm.bias")
	modeltest.Place(t, filepath.Join(hf, "model.safetensors"), w.Safetensors(weightfile.BF16))
	other := modeltest.Folder(t, map[string][]byte{
		"config.json": []byte(`{"model_type": "wav2vec2"}`), "model.safetensors": []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"),
	})
	for says, c := range map[string]struct {
		source string
		o      ImportOptions
		is     error
	}{
		"expected a tensor model.encoder.layer_norm.bias": {hf, ImportOptions{}, models.ErrBroken},
		`type: expected f16, q8_0 or q5_0, found "q4"`:    {hf, ImportOptions{Type: "q4"}, models.ErrBroken},
		"otograph models import FOLDER":                   {other, ImportOptions{}, models.ErrMissing},
		"expected a model for role vad":                   {hf, ImportOptions{Role: models.RoleVAD}, models.ErrMissing},
		`"wespeaker" is for role embedder, found Whisper in ` + filepath.Base(hf) + ": pass --role embedder": {hf, ImportOptions{Contract: models.ContractWeSpeaker}, models.ErrBroken},
	} {
		s := &Store{Dir: t.TempDir()}
		_, err := s.Import(t.Context(), c.source, c.o)
		require.ErrorIs(t, err, c.is, says)
		require.ErrorContains(t, err, says)
		names, err := list(s.Dir)
		require.NoError(t, err)
		assert.Empty(t, names)
	}
}

// TestContractAppliesIfRecognitionFails imports a graph of no known family, by
// the file and by its folder.
func TestContractAppliesIfRecognitionFails(t *testing.T) {
	graph := onnxfile.NewGraph().Input("mels", onnxfile.Float32, 1, "T", 40).Output("voice", onnxfile.Float32, 1, 256).Bytes()
	dir := modeltest.Folder(t, map[string][]byte{"ge2e.onnx": graph})
	for _, source := range []string{dir, filepath.Join(dir, "ge2e.onnx")} {
		_, err := (&Store{Dir: t.TempDir()}).Import(t.Context(), source, ImportOptions{Role: models.RoleEmbedder})
		require.ErrorContains(t, err, "an ONNX model of an unknown kind")
		for _, o := range []ImportOptions{{Contract: models.ContractWeSpeaker}, {Role: models.RoleEmbedder, Contract: models.ContractWeSpeaker, SameSpeaker: 0.6}} {
			s := &Store{Dir: t.TempDir()}
			done, err := s.Import(t.Context(), source, o)
			require.NoError(t, err)
			require.Len(t, done, 1)
			assert.Equal(t, models.RoleEmbedder, done[0].Role)
			set, err := OpenDir(s.Dir)
			require.NoError(t, err)
			assert.Equal(t, models.ContractWeSpeaker, set.Models[0].Contract)
			assert.Equal(t, o.SameSpeaker, set.Models[0].SameSpeaker)
		}
		_, err = (&Store{Dir: t.TempDir()}).Import(t.Context(), source, ImportOptions{Role: models.RoleTagger, Contract: models.ContractWeSpeaker})
		require.ErrorContains(t, err, `"wespeaker" is for role embedder, expected one for tagger`)
	}
}

// TestConversionOptionsApplyOrAreRefused imports models that need no
// conversion with the options of a conversion.
func TestConversionOptionsApplyOrAreRefused(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{"vad.onnx": modeltest.SileroV5().Bytes()})
	w, both := modeltest.WhisperWeights(), t.TempDir()
	w.CT2Folder(t, both, 6, weightfile.F16)
	modeltest.Place(t, filepath.Join(both, "vad.onnx"), modeltest.SileroV5().Bytes())
	for source, role := range map[string]models.Role{dir: "", filepath.Join(dir, "vad.onnx"): "", both: models.RoleVAD} {
		s := &Store{Dir: t.TempDir()}
		done, err := s.Import(t.Context(), source, ImportOptions{Role: role, Type: ggmlfile.Q5_0})
		require.NoError(t, err)
		require.Len(t, done, 1)
		assert.Equal(t, []string{"not converted: its precision stays, and the type q5_0 has no effect"}, done[0].Notes)
	}
}
