package library

import (
	"archive/tar"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// Archives as their publishers build them: which files are extracted from each,
// or why none are.
func TestPublishersArchives(t *testing.T) {
	streaming := onnxfile.NewGraph().Input("x", onnxfile.Float32, 1, 67, 80).Input("offset", onnxfile.Int64, 1).Input("required_cache_size", onnxfile.Int64, 1).
		Input("attn_cache", onnxfile.Float32, 12, 4, 64, 128).Output("log_probs", onnxfile.Float32, 1, 16, 9).Meta("model_type", "wenet_ctc").Bytes()
	wenet := onnxfile.NewGraph().Input("x", onnxfile.Float32, 1, "T", 80).Input("x_lens", onnxfile.Int64, 1).
		Output("log_probs", onnxfile.Float32, 1, "T", 9).Output("log_probs_lens", onnxfile.Int64, 1).Meta("model_type", "wenet_ctc").Bytes()
	ced := onnxfile.NewGraph().Input("feats", onnxfile.Float32, "B", 64, "T").Output("prob", onnxfile.Float32, "B", 527).Meta("model_type", "CED").Bytes()
	zipformer := onnxfile.NewGraph().Input("x", onnxfile.Float32, "N", "T", 80).Input("x_lens", onnxfile.Int64, "N").
		Output("logits", onnxfile.Float32, "N", 527).Meta("model_type", "zipformer2").Bytes()
	segmentation := onnxfile.NewGraph().Input("x", onnxfile.Float32, "N", 1, "T").Output("y", onnxfile.Float32, "N", "F", 7).Bytes()
	tokens := []byte("<blk> 0\n")
	for name, c := range map[string]struct {
		files map[string][]byte
		takes string
		why   string
	}{
		"wenet with streaming": {map[string][]byte{"model-streaming.onnx": streaming, "model.onnx": wenet, "tokens.txt": tokens}, "model.onnx", ""},
		"wenet streaming only": {map[string][]byte{"model-streaming.onnx": streaming, "tokens.txt": tokens}, "", "streaming"},
		"ced":                  {map[string][]byte{"model.onnx": ced, "model.int8.onnx": ced}, "model.int8.onnx", ""},
		"zipformer tagger":     {map[string][]byte{"model.onnx": zipformer, "model.int8.onnx": zipformer}, "model.int8.onnx", ""},
		"segmentation":         {map[string][]byte{"model.onnx": segmentation, "model.int8.onnx": segmentation}, "model.onnx", ""},
		"funasr":               {map[string][]byte{"model.onnx": modeltest.SenseVoice().Bytes(), "model_quant.onnx": modeltest.SenseVoice().Bytes(), "tokens.txt": tokens}, "model_quant.onnx", ""},
		"streaming nemo": {map[string][]byte{
			"model.onnx": modeltest.NeMoCTC().Input("cache_last_channel", onnxfile.Float32, 1, 17, 70, 512).Bytes(), "tokens.txt": tokens,
		}, "", "streaming NeMo"},
		"gigaam": {map[string][]byte{"model.int8.onnx": modeltest.GigaAMCTC().Meta("is_giga_am", "1").Bytes(), "tokens.txt": tokens}, "model.int8.onnx", ""},
		"gigaam rnnt of onnx-asr": {map[string][]byte{
			"v3_e2e_rnnt_encoder.onnx": modeltest.GigaAMEncoder().Bytes(), "v3_e2e_rnnt_decoder.onnx": modeltest.GigaAMDecoder().Bytes(),
			"v3_e2e_rnnt_joint.onnx": modeltest.GigaAMJoiner().Bytes(), "v3_e2e_rnnt_vocab.txt": tokens,
		}, "v3_e2e_rnnt_encoder.onnx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "published.tar.gz")
			modeltest.Place(t, archive, gzipped(t, tarball(t, func(w *tar.Writer) {
				for _, file := range slices.Sorted(maps.Keys(c.files)) {
					addFile(t, w, "published/"+file, c.files[file])
				}
			})))
			s := &Store{Dir: filepath.Join(t.TempDir(), "m")}
			done, err := s.Import(t.Context(), archive, ImportOptions{})
			if c.takes == "" {
				require.ErrorIs(t, err, models.ErrMissing)
				require.ErrorContains(t, err, c.why)
				return
			}
			require.NoError(t, err)
			require.Len(t, done, 1)
			assert.Equal(t, c.takes, done[0].Files[0].Name)
			set, err := OpenDir(s.Dir)
			require.NoError(t, err)
			require.Len(t, set.Models, 1)
			assert.Equal(t, c.takes, set.Models[0].Main().Name)
		})
	}
}

// TestImportNamesAModelByItsFolder imports files with generic names; only the
// folder's name identifies the model.
func TestImportNamesAModelByItsFolder(t *testing.T) {
	for _, name := range []string{"my-vad", "unpacked"} {
		file := filepath.Join(t.TempDir(), name, "model.onnx")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
		modeltest.Place(t, file, modeltest.SileroV5().Bytes())
		done, err := (&Store{Dir: t.TempDir()}).Import(t.Context(), file, ImportOptions{})
		require.NoError(t, err)
		assert.Equal(t, name, done[0].Name)
	}
}

func TestImportFileTakesItsCompanions(t *testing.T) {
	encoder := modeltest.TDTEncoder().Constant("w", onnxfile.ExternalTensor(onnxfile.Float32, []int64{4}, "encoder.weights", 16)).Bytes()
	source := modeltest.Folder(t, map[string][]byte{
		"parakeet v3/encoder.onnx":    encoder,
		"parakeet v3/encoder.weights": make([]byte, 16),
		"parakeet v3/decoder.onnx":    modeltest.TDTDecoder().Bytes(),
		"parakeet v3/joiner.onnx":     modeltest.TDTJoiner().Bytes(),
		"parakeet v3/tokens.txt":      []byte("<blk> 0\n"),
		"parakeet v3/readme.md":       []byte("no"),
	})
	reported := map[string]int64{}
	s := &Store{Dir: filepath.Join(t.TempDir(), "m"), Progress: func(p Progress) { reported[p.File] = p.Done }}
	done, err := s.Import(t.Context(), filepath.Join(source, "parakeet v3", "encoder.onnx"), ImportOptions{Languages: []string{"en", "fr"}, License: "CC-BY-4.0"})
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, "parakeet-v3", done[0].Name, "a general file name gives way to the folder's")
	assert.Equal(t, int64(len(encoder)), reported["encoder.onnx"])
	names, err := list(done[0].Dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"decoder.onnx", "encoder.onnx", "encoder.weights", "joiner.onnx", "tokens.txt"}, names)

	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, ok := set.OptimizedFor("fr")
	require.True(t, ok)
	assert.Equal(t, models.ContractNeMoTransducer, m.Contract)
	assert.Equal(t, "CC-BY-4.0", m.License)
	for _, f := range m.Files {
		sum, _, err := fetch.HashFile(f.Path)
		require.NoError(t, err)
		assert.Equal(t, sum, f.SHA256, f.Name)
	}
	assert.Len(t, m.Files, 5)

	// Importing the same model again changes nothing; other content under its
	// name is refused.
	done, err = s.Import(t.Context(), filepath.Join(source, "parakeet v3", "encoder.onnx"), ImportOptions{})
	require.NoError(t, err)
	assert.True(t, done[0].Already)
	modeltest.Place(t, filepath.Join(source, "parakeet v3", "tokens.txt"), []byte("other"))
	_, err = s.Import(t.Context(), filepath.Join(source, "parakeet v3", "encoder.onnx"), ImportOptions{})
	require.ErrorContains(t, err, "--name")
	done, err = s.Import(t.Context(), filepath.Join(source, "parakeet v3", "encoder.onnx"), ImportOptions{Name: "../two"})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(s.Dir, "two"), done[0].Dir)
	set, err = OpenDir(s.Dir)
	require.NoError(t, err)
	assert.Len(t, set.All(models.RoleOptimized), 2)
}

// TestImportIcefallTransducer imports the content of k2-fsa's archives: both
// precisions of the three graphs, an exact decoder with an 8-bit encoder and
// joiner, or a streaming encoder.
func TestImportIcefallTransducer(t *testing.T) {
	const rest = "-epoch-99-avg-1"
	files := map[string][]byte{"tokens.txt": []byte("<blk> 0\n"), "bpe.model": []byte("no")}
	for word, g := range map[string]*onnxfile.Graph{"encoder": modeltest.IcefallEncoder(), "decoder": modeltest.IcefallDecoder(), "joiner": modeltest.IcefallJoiner()} {
		files[word+rest+".onnx"] = g.Bytes()
		files[word+rest+".int8.onnx"] = g.Bytes()
	}
	mixed := maps.Clone(files)
	delete(mixed, "decoder"+rest+".int8.onnx")
	delete(mixed, "joiner"+rest+".onnx")
	streaming := maps.Clone(files)
	streaming["encoder"+rest+".onnx"], streaming["encoder"+rest+".int8.onnx"] = modeltest.IcefallStream().Bytes(), modeltest.IcefallStream().Bytes()
	decoders := map[string]string{"folder": "decoder" + rest + ".int8.onnx", "mixed": "decoder" + rest + ".onnx", "streaming": "decoder" + rest + ".int8.onnx"}
	for name, held := range map[string]map[string][]byte{"folder": files, "mixed": mixed, "streaming": streaming} {
		dir := modeltest.Folder(t, held)
		for _, source := range []string{dir, filepath.Join(dir, "encoder"+rest+".int8.onnx")} {
			s := &Store{Dir: t.TempDir()}
			done, err := s.Import(t.Context(), source, ImportOptions{Name: "zipformer", Languages: []string{"en"}})
			require.NoError(t, err)
			require.Len(t, done, 1)
			set, err := OpenDir(s.Dir)
			require.NoError(t, err)
			m, ok := set.OptimizedFor("en")
			require.True(t, ok)
			assert.Equal(t, models.ContractIcefallTransducer, m.Contract)
			parts := map[models.Part]string{}
			for _, f := range m.Files {
				parts[f.Part] = f.Name
			}
			assert.Equal(t, map[models.Part]string{
				models.PartEncoder: "encoder" + rest + ".int8.onnx", models.PartDecoder: decoders[name],
				models.PartJoiner: "joiner" + rest + ".int8.onnx", models.PartTokens: "tokens.txt",
			}, parts, source)
			_, ok = set.AlignerFor("en")
			assert.False(t, ok, "a transducer has no CTC output")
		}
	}
}

// TestImportMoonshineStream imports Moonshine's streaming layout by its folder
// and by its encoder, with the decoder that returns its attention.
func TestImportMoonshineStream(t *testing.T) {
	const f32, i64 = onnxfile.Float32, onnxfile.Int64
	decoder := onnxfile.NewGraph().Input("token", i64, 1, "L").Output("logits", f32, 1, "L", 9).Output("out_k_self", f32).Output("out_v_self", f32)
	for _, name := range []string{"k_self", "v_self", "out_k_cross", "out_v_cross"} {
		decoder.Input(name, f32, 6, 1, 8, name, 40)
	}
	frontend := onnxfile.NewGraph().Input("audio_chunk", f32, 1, "T").Input("sample_buffer", f32, 1, 79).Input("conv1_buffer", f32, 1, 320, 4).Input("conv2_buffer", f32, 1, 640, 4).Output("features", f32, 1, "F", 320)
	files := map[string][]byte{
		"tokenizer.bin": []byte("\x01a"), "streaming_config.json": []byte("{}"),
		"frontend.onnx": frontend.Bytes(), "decoder_kv.onnx": decoder.Bytes(), "decoder_kv_with_attention.onnx": decoder.Bytes(),
		"encoder.onnx":  onnxfile.NewGraph().Input("features", f32, 1, "F", 320).Output("encoded", f32, 1, "F", 320).Bytes(),
		"adapter.onnx":  onnxfile.NewGraph().Input("encoded", f32, 1, "F", 320).Input("pos_offset", i64, 1).Output("memory", f32, 1, "F", 320).Bytes(),
		"cross_kv.onnx": onnxfile.NewGraph().Input("memory", f32, 1, "F", 320).Output("k_cross", f32).Output("v_cross", f32).Bytes(),
	}
	dir := modeltest.Folder(t, files)
	for _, source := range []string{dir, filepath.Join(dir, "encoder.onnx")} {
		s := &Store{Dir: t.TempDir()}
		_, err := s.Import(t.Context(), source, ImportOptions{Name: "moonshine", Languages: []string{"en"}})
		require.NoError(t, err)
		set, err := OpenDir(s.Dir)
		require.NoError(t, err)
		m, ok := set.OptimizedFor("en")
		require.True(t, ok)
		assert.Equal(t, models.ContractMoonshine, m.Contract)
		assert.Equal(t, map[models.Part]string{
			models.PartFrontend: "frontend.onnx", models.PartEncoder: "encoder.onnx", models.PartAdapter: "adapter.onnx", models.PartJoiner: "cross_kv.onnx",
			models.PartDecoder: "decoder_kv_with_attention.onnx", models.PartTokens: "tokenizer.bin", models.PartConfig: "streaming_config.json",
		}, parts(m), source)
	}
	delete(files, "adapter.onnx")
	_, err := OpenDir(modeltest.Folder(t, files))
	require.ErrorIs(t, err, models.ErrMissing)
	assert.ErrorContains(t, err, "expects its adapter")
}

func TestImportFolderAndArchive(t *testing.T) {
	files := map[string][]byte{"vad.onnx": modeltest.SileroV5().Bytes(), "model.int8.onnx": modeltest.SenseVoice().Bytes(), "tokens.txt": []byte("<unk> 0")}
	s := &Store{Dir: t.TempDir()}
	done, err := s.Import(t.Context(), modeltest.Folder(t, files), ImportOptions{})
	require.NoError(t, err)
	assert.Len(t, done, 2)

	archive := filepath.Join(t.TempDir(), "sherpa-sense.tar")
	modeltest.Place(t, archive, tarball(t, func(w *tar.Writer) {
		for name, data := range files {
			addFile(t, w, "sherpa/"+name, data)
		}
		addFile(t, w, "sherpa/test_wavs/a.wav", []byte("RIFF"))
	}))
	s = &Store{Dir: t.TempDir()}
	done, err = s.Import(t.Context(), archive, ImportOptions{Role: models.RoleOptimized})
	require.NoError(t, err)
	require.Len(t, done, 1, "only the requested role")
	assert.Equal(t, "sherpa-sense", done[0].Name)
	left, err := os.ReadDir(filepath.Join(s.Dir, partials))
	require.NoError(t, err)
	assert.Len(t, left, 1, "only the lock stays")
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, ok := set.OptimizedFor("yue")
	require.True(t, ok)
	assert.Equal(t, models.ContractSenseVoice, m.Contract)
}

func TestImportRefuses(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{
		"vad.onnx": modeltest.SileroV5().Bytes(), "bare.onnx": modeltest.Bare().Bytes(), "cut.onnx": modeltest.SileroV5().Bytes()[:40],
		"model.pth": []byte("PK\x03\x04"), "ctc.onnx": modeltest.NeMoCTC().Bytes(), "decoder.onnx": modeltest.TDTDecoder().Bytes(),
		"junk/model.pth": []byte("PK\x03\x04"),
	})
	cases := map[string]struct {
		file string
		o    ImportOptions
		is   error
		says string
	}{
		"other role":         {"vad.onnx", ImportOptions{Role: models.RoleTagger}, models.ErrBroken, "expected a model for role tagger, found one for vad"},
		"wrong contract":     {"ctc.onnx", ImportOptions{Contract: models.ContractGigaAMCTC}, models.ErrBroken, "expected contract gigaam-ctc, found nemo-ctc"},
		"unknown contract":   {"vad.onnx", ImportOptions{Contract: "x"}, models.ErrBroken, "contract"},
		"no contract stated": {"bare.onnx", ImportOptions{}, ErrAmbiguous, "wespeaker"},
		"damaged":            {"cut.onnx", ImportOptions{}, models.ErrBroken, "cut.onnx"},
		"checkpoint":         {"model.pth", ImportOptions{}, models.ErrUnsupported, "tools/convert"},
		"no tokens":          {"ctc.onnx", ImportOptions{}, models.ErrMissing, "tokens"},
		"a part":             {"decoder.onnx", ImportOptions{}, models.ErrBroken, "encoder"},
		"not there":          {"gone.onnx", ImportOptions{}, models.ErrMissing, "gone.onnx"},
		"nothing in it":      {"junk", ImportOptions{}, models.ErrMissing, "model.pth"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Store{Dir: t.TempDir()}
			_, err := s.Import(t.Context(), filepath.Join(dir, c.file), c.o)
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, c.says)
			names, err := list(s.Dir)
			require.NoError(t, err)
			assert.Empty(t, names)
		})
	}
	s := &Store{Dir: t.TempDir()}
	done, err := s.Import(t.Context(), filepath.Join(dir, "bare.onnx"), ImportOptions{Contract: models.Contract3DSpeaker, SameSpeaker: 0.4})
	require.NoError(t, err)
	assert.Equal(t, "bare", done[0].Name)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	assert.Equal(t, 0.4, set.Models[0].SameSpeaker)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&Store{Dir: t.TempDir()}).Import(ctx, filepath.Join(dir, "vad.onnx"), ImportOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestVerify(t *testing.T) {
	_, e, s := serve(t, nil)
	_, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	source := modeltest.Folder(t, map[string][]byte{"ctc.onnx": modeltest.NeMoCTC().Bytes(), "tokens.txt": []byte("x 0")})
	_, err = s.Import(t.Context(), filepath.Join(source, "ctc.onnx"), ImportOptions{})
	require.NoError(t, err)
	m, err := readManifest(s.Dir)
	require.NoError(t, err)
	modeltest.Place(t, filepath.Join(s.Dir, "hand.onnx"), modeltest.YAMNet().Bytes())
	m.Roles["tagger"] = oneOrMany[entry]{{Files: map[models.Part]string{models.PartModel: "hand.onnx"}}}
	require.NoError(t, writeJSON(filepath.Join(s.Dir, manifestName), m))

	status := func() map[string]Status {
		checks, err := s.Verify(t.Context())
		require.NoError(t, err)
		out := map[string]Status{}
		for _, c := range checks {
			rel, err := filepath.Rel(s.Dir, c.Path)
			require.NoError(t, err)
			out[rel] = c.Status
		}
		return out
	}
	assert.Equal(t, map[string]Status{
		"made-up-vad/vad.onnx": StatusOK, "ctc/ctc.onnx": StatusOK, "ctc/tokens.txt": StatusOK, "hand.onnx": StatusUnrecorded,
	}, status())
	data, err := os.ReadFile(filepath.Join(s.Dir, "made-up-vad/vad.onnx"))
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	modeltest.Place(t, filepath.Join(s.Dir, "made-up-vad/vad.onnx"), data)
	require.NoError(t, os.Remove(filepath.Join(s.Dir, "ctc/tokens.txt")))
	assert.Equal(t, map[string]Status{
		"made-up-vad/vad.onnx": StatusChanged, "ctc/ctc.onnx": StatusOK, "ctc/tokens.txt": StatusMissing, "hand.onnx": StatusUnrecorded,
	}, status())
}

// TestPublishedHashOfSeveralVersions: of versions with the same name and size,
// the one with the file's hash counts, or else any of them.
func TestPublishedHashOfSeveralVersions(t *testing.T) {
	versions := map[string]bool{}
	for _, e := range Catalog() {
		if e.Role == models.RoleVAD && e.Files[0].Size == 2327524 {
			versions[e.Files[0].SHA256] = true
			assert.Equal(t, e.Files[0].SHA256, publishedHash(models.RoleVAD, "silero_vad.onnx", 2327524, e.Files[0].SHA256))
		}
	}
	require.Len(t, versions, 3, "three versions of Silero share name and size")
	assert.True(t, versions[publishedHash(models.RoleVAD, "silero_vad.onnx", 2327524, "other")])
	assert.Empty(t, publishedHash(models.RoleVAD, "silero_vad.onnx", 1, "other"))
}

func TestList(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "none")}
	lines, err := s.List()
	require.NoError(t, err, "a missing folder is empty")
	require.Len(t, lines, len(Catalog()))
	for _, l := range lines {
		assert.False(t, l.Installed || l.InUse, l.Name)
	}
	i := slices.IndexFunc(lines, func(l Listed) bool { return l.Name == "silero-v6.2.1" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, []string{"small", "balanced", "best", "zh"}, lines[i].Profiles)

	s.Dir = modeltest.Folder(t, map[string][]byte{"mine.onnx": modeltest.SileroV5().Bytes()})
	lines, err = s.List()
	require.NoError(t, err)
	require.Len(t, lines, len(Catalog())+1)
	i = slices.IndexFunc(lines, func(l Listed) bool { return l.Name == "mine" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, int64(len(modeltest.SileroV5().Bytes())), lines[i].Size)
	assert.True(t, lines[i].Installed && lines[i].InUse)
	assert.Nil(t, lines[i].Catalog)
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for _, c := range []struct {
		env, data, want string
		named           bool
	}{
		{"/models", "/data", "/models", true},
		{"", "/data", "/data/otograph/models", false},
		{"", "", "/home/someone/.local/share/otograph/models", false},
		{"", "relative", "/home/someone/.local/share/otograph/models", false},
	} {
		t.Setenv(envDir, c.env)
		t.Setenv("XDG_DATA_HOME", c.data)
		dir, named, err := DefaultDir()
		require.NoError(t, err)
		assert.Equal(t, c.want, dir)
		assert.Equal(t, c.named, named)
	}
}

func TestCatalogIsSound(t *testing.T) {
	names := map[string]bool{}
	for _, e := range Catalog() {
		assert.False(t, names[e.Name], "%s twice", e.Name)
		names[e.Name] = true
		assert.Equal(t, e.Name, modelName(e.Name), "a name that is a folder")
		served, ok := models.ContractRole(e.Contract)
		assert.True(t, ok && served == e.Role, "%s: contract %s", e.Name, e.Contract)
		assert.NotEmpty(t, e.License, e.Name)
		for _, code := range e.Languages {
			assert.True(t, models.ValidLanguage(code), "%s: %s", e.Name, code)
		}
		downloads := []Download{}
		if e.Archive != nil {
			downloads = append(downloads, *e.Archive)
			_, isArchive := archiveStem(e.Archive.Name)
			assert.True(t, isArchive, e.Name)
		}
		files := map[string]bool{}
		entry := entry{Files: map[models.Part]string{}}
		for _, a := range e.Files {
			assert.False(t, files[a.Name])
			files[a.Name] = true
			entry.Files[a.Part] = a.Name
			require.NoError(t, localName(a.Name))
			if e.Archive == nil {
				downloads = append(downloads, a.Download)
			} else {
				assert.Empty(t, a.URL)
			}
		}
		require.NoError(t, entry.check(e.Role), e.Name)
		m := &models.Model{Role: e.Role, Name: e.Name, Contract: e.Contract}
		for part := range entry.Files {
			m.Files = append(m.Files, models.File{Part: part})
		}
		require.NoError(t, complete(m, ""), e.Name)
		known := 0
		for _, d := range downloads {
			assert.True(t, strings.HasPrefix(d.URL, "https://"), "%s: %s", e.Name, d.URL)
			if d.SHA256 != "" {
				assert.True(t, isSHA256(d.SHA256), e.Name)
				known++
			}
		}
		assert.Equal(t, e.Sources > 0, known == len(downloads), "%s: %d sources, %d of %d hashes", e.Name, e.Sources, known, len(downloads))
		var packages []pythonPackage
		if e.Repackaged != nil {
			assert.Equal(t, models.RoleStandard, e.Role)
			assert.True(t, isSHA256(e.Repackaged.SHA256), e.Name)
			assert.NotEmpty(t, e.Repackaged.Packages)
			packages = append(packages, e.Repackaged.Packages...)
		}
		if e.Package != nil {
			assert.Equal(t, len(downloads), known, "%s: a package stands for files whose hashes are known", e.Name)
			packages = append(packages, *e.Package)
		}
		for _, p := range packages {
			assert.True(t, p.Name != "" && p.Version != "" && isSHA256(p.SHA256), "%s: %+v", e.Name, p)
		}
		if e.Convert != "" {
			assert.FileExists(t, filepath.Join("..", "..", "tools", "convert", e.Convert))
		}
	}
	assert.Equal(t, []string{"starter", "small", "balanced", "best", "zh"}, profiles())
	for _, p := range profiles() {
		found, err := Find(p)
		require.NoError(t, err)
		roles := map[models.Role]int{}
		for _, e := range found {
			roles[e.Role]++
			assert.Positive(t, e.bytes(), "%s: a profile is of known sizes", e.Name)
			assert.GreaterOrEqual(t, e.Sources, 2, "%s: a profile stands on more than one source", e.Name)
			assert.Empty(t, e.Convert, "a profile needs no conversion")
		}
		if p == "starter" { // the embedded networks fill the other roles
			assert.Equal(t, 1, roles[models.RoleStandard])
			assert.Subset(t, []models.Role{models.RoleStandard, models.RoleOptimized}, slices.Collect(maps.Keys(roles)))
			continue
		}
		assert.Equal(t, map[models.Role]int{models.RoleStandard: 1, models.RoleOptimized: 1, models.RoleVAD: 1, models.RoleEmbedder: 1, models.RoleSegmenter: 1, models.RoleTagger: 1}, roles, p)
	}
	for language, list := range catalog().Languages {
		require.NotEmpty(t, list, language)
		for _, name := range list {
			found, err := Find(name)
			require.NoError(t, err)
			assert.Equal(t, models.RoleOptimized, found[0].Role, name)
			assert.Contains(t, found[0].Languages, language, name)
			assert.GreaterOrEqual(t, found[0].Sources, 2, name)
		}
	}
}

// TestFindByLanguage replaces the model of the optimized tier.
func TestFindByLanguage(t *testing.T) {
	optimized := func(name string) string {
		found, err := Find(name)
		require.NoError(t, err)
		assert.Len(t, found, 6)
		i := slices.IndexFunc(found, func(e Entry) bool { return e.Role == models.RoleOptimized })
		return found[i].Name
	}
	assert.Equal(t, "fastconformer-ctc-10lang-int8", optimized("balanced"))
	assert.Equal(t, "parakeet-tdt-ctc-0.6b-ja-int8", optimized("balanced:ja"))
	assert.Equal(t, "reazonspeech-k2-v2-int8", optimized("small:ja"))
	assert.Equal(t, "zipformer-vi-int8", optimized("best:vi"))
	_, err := Find("balanced:xx")
	require.ErrorIs(t, err, models.ErrMissing)
	require.ErrorContains(t, err, `for language "xx", but for bg, cs`)
	_, err = Find("silero-v6.2.1:ja")
	require.ErrorContains(t, err, "no model or profile")
}

func TestFindSuggests(t *testing.T) {
	_, err := Find("silero")
	require.ErrorIs(t, err, models.ErrMissing)
	assert.ErrorContains(t, err, "silero-v6.2.1")
	_, err = Find("nonsense")
	assert.ErrorContains(t, err, "profiles: starter, small, balanced, best, zh")
}

func TestPulledCheckpointWaitsForItsConversion(t *testing.T) {
	h, e, s := serve(t, func(h *publisher, e *Entry) {
		h.data = []byte("PK\x03\x04 a checkpoint")
		e.Role, e.Contract, e.Convert = models.RoleTagger, models.ContractPANNs, "panns.py"
		e.Files[0].Size, e.Files[0].SHA256 = int64(len(h.data)), hexSum(h.data)
	})
	for _, already := range []bool{false, true} {
		done, err := s.pull(t.Context(), []Entry{e})
		require.NoError(t, err)
		assert.Equal(t, "panns.py", done[0].Convert)
		assert.Equal(t, already, done[0].Already)
		assert.FileExists(t, done[0].Files[0].Path)
		set, err := OpenDir(s.Dir)
		require.NoError(t, err)
		assert.Empty(t, set.Models, "it is not put to use")
	}
	assert.Len(t, h.asked(), 1)
}

func TestPullReportsModelsStoredBeforeAFailure(t *testing.T) {
	_, e, s := serve(t, nil)
	gone := e
	gone.Name = "gone"
	gone.Files = []Asset{{models.PartModel, Download{Name: "x.onnx", URL: e.Files[0].URL}}}
	gone.Files[0].Size = 5
	done, err := s.pull(t.Context(), []Entry{e, gone})
	require.ErrorIs(t, err, models.ErrBroken)
	assert.ErrorContains(t, err, "model gone")
	require.Len(t, done, 1)
	assert.Equal(t, "made-up-vad", done[0].Name)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	assert.Len(t, set.Models, 1)
}
