package native

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// registryWith serves a package that contains one library among other files.
func registryWith(t *testing.T, library []byte) (*httptest.Server, pins) {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for name, body := range map[string][]byte{"package/README": []byte("read me"), "package/lib": library} {
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body))}))
		_, err := files.Write(body)
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	one := sha256.Sum256(library)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/npm/runtime/1.2.3":
			_, _ = fmt.Fprintf(w, `{"dist": {"tarball": "%s/files/runtime.tgz"}}`, server.URL)
		case "/files/runtime.tgz":
			_, _ = w.Write(archive.Bytes())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, pins{
		Name: "runtime", Version: "1.2.3",
		File: "package/lib", SHA256: hex.EncodeToString(one[:]),
	}
}

func TestInstallFromPackage(t *testing.T) {
	library := bytes.Repeat([]byte("machine code"), 100_000)
	server, pins := registryWith(t, library)
	brew := t.TempDir()
	n := npm{platform: "darwin/arm64", registry: server.URL + "/npm/", pins: pins, places: places{system: []string{brew}}}
	dest := filepath.Join(t.TempDir(), "new", "native")
	var out bytes.Buffer
	require.NoError(t, n.install(context.Background(), dest, &out))
	assert.Contains(t, out.String(), "onnxruntime 1.2.3 is in "+dest)
	assert.Contains(t, out.String(), "brew install whisper-cpp")
	got, err := os.ReadFile(filepath.Join(dest, "lib", ONNXRuntimeFile))
	require.NoError(t, err)
	assert.Equal(t, library, got)
	facts, err := os.ReadFile(filepath.Join(dest, "VERSIONS"))
	require.NoError(t, err)
	assert.Equal(t, "onnxruntime 1.2.3 "+pins.SHA256+" npm\n", string(facts))

	// The second time there is nothing to do, even without the network;
	// Homebrew's library is found.
	touch(t, brew, WhisperFile)
	server.Close()
	out.Reset()
	require.NoError(t, n.install(context.Background(), dest, &out))
	assert.Contains(t, out.String(), "nothing to do")
	assert.Contains(t, out.String(), "libwhisper is in "+brew)

	n.platform = "windows/amd64"
	out.Reset()
	require.NoError(t, n.install(context.Background(), dest, &out))
	assert.Contains(t, out.String(), "libwhisper is not opened")
}

// TestInstallRefusesAnotherPackage checks that only the pinned library is
// installed where a program would open it.
func TestInstallRefusesAnotherPackage(t *testing.T) {
	server, pins := registryWith(t, []byte("machine code"))
	full := t.TempDir()
	touch(t, full, "thesis.txt")
	for name, c := range map[string]struct {
		change func(*npm)
		dest   string
		want   string
	}{
		"another file":    {func(n *npm) { n.pins.SHA256 = "00" }, "", "expected sha256 00"},
		"file not there":  {func(n *npm) { n.pins.File = "package/absent" }, "", "holds no package/absent"},
		"no such version": {func(n *npm) { n.pins.Version = "9.9.9" }, "", "404"},
		"no platform":     {func(n *npm) { n.pins.File = "" }, "", "holds no ONNX Runtime for darwin/amd64: set " + EnvONNXRuntime},
		"no registry":     {func(n *npm) { n.registry = "http://127.0.0.1:1" }, "", EnvONNXRuntime},
		"another folder":  {func(*npm) {}, full, "holds something else"},
	} {
		t.Run(name, func(t *testing.T) {
			n := npm{platform: "darwin/amd64", registry: server.URL + "/npm", pins: pins}
			c.change(&n)
			dest := c.dest
			if dest == "" {
				dest = filepath.Join(t.TempDir(), "native")
			}
			assert.ErrorContains(t, n.install(context.Background(), dest, &bytes.Buffer{}), c.want)
			left, err := filepath.Glob(filepath.Join(dest, "lib", "*"))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
	assert.FileExists(t, filepath.Join(full, "thesis.txt"))
}

// TestInstallAgainAfterFailure checks that a fetch that failed or was killed
// can be repeated.
func TestInstallAgainAfterFailure(t *testing.T) {
	server, pins := registryWith(t, []byte("machine code"))
	dest := filepath.Join(t.TempDir(), "native")
	n := npm{platform: "darwin/arm64", registry: "http://127.0.0.1:1", pins: pins}
	require.Error(t, n.install(context.Background(), dest, &bytes.Buffer{}), "nobody answers")
	require.Error(t, n.install(context.Background(), dest, &bytes.Buffer{}), "the server does not respond yet")
	touch(t, filepath.Join(dest, "lib"), partial+"123", "archive")

	n.registry = server.URL + "/npm"
	touch(t, filepath.Join(dest, "lib"), "thesis.txt")
	require.ErrorContains(t, n.install(context.Background(), dest, &bytes.Buffer{}), "holds something else")
	require.NoError(t, os.Remove(filepath.Join(dest, "lib", "thesis.txt")))
	require.NoError(t, n.install(context.Background(), dest, &bytes.Buffer{}))
	assert.FileExists(t, filepath.Join(dest, "lib", ONNXRuntimeFile))
	assert.FileExists(t, filepath.Join(dest, "VERSIONS"))
}

// TestPackageHasTheRecipesPin checks that the package has the same pin as the
// recipe for Linux.
func TestPackageHasTheRecipesPin(t *testing.T) {
	for platform, file := range map[string]string{
		"linux/amd64": "libonnxruntime.so.1", "linux/arm64": "libonnxruntime.so.1", "darwin/arm64": "libonnxruntime.1.30.0.dylib",
		"windows/amd64": "onnxruntime.dll", "windows/arm64": "onnxruntime.dll",
	} {
		p, ok := onnxRuntimePins(platform)
		require.True(t, ok, platform)
		assert.Equal(t, file, filepath.Base(p.File))
		assert.Len(t, p.SHA256, 64)
	}
	p, ok := onnxRuntimePins("darwin/amd64")
	assert.False(t, ok)
	assert.Equal(t, "onnxruntime-node", p.Name)
}

// On systems without a recipe, ONNX Runtime comes from the registry that npm
// uses, unless the user has named a library.
func TestInstallWithoutRecipe(t *testing.T) {
	own := touch(t, t.TempDir(), "libonnxruntime.so")
	t.Setenv(EnvONNXRuntime, own)
	var out bytes.Buffer
	require.NoError(t, installPackage(t.Context(), t.TempDir(), &out))
	assert.Equal(t, "native: nothing to do, "+EnvONNXRuntime+" is "+own+"\n", out.String())
	t.Setenv(EnvONNXRuntime, own+".absent")
	assert.ErrorIs(t, installPackage(t.Context(), t.TempDir(), &out), ErrMissing)

	t.Setenv(EnvONNXRuntime, "")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("npm_config_registry", server.URL)
	err := installPackage(t.Context(), t.TempDir(), &out)
	assert.ErrorContains(t, err, EnvONNXRuntime+" to your own library")
	assert.ErrorContains(t, err, server.URL)

	t.Setenv("npm_config_registry", "")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	assert.Equal(t, "https://registry.npmjs.org", registry(t.Context()), "without npm")
	for answer, want := range map[string]string{"https://mirror.example/npm/": "https://mirror.example/npm/", "undefined": "https://registry.npmjs.org"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\necho "+answer+"\n"), 0o755))
		assert.Equal(t, want, registry(t.Context()))
	}
}
