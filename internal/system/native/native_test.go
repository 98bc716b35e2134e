package native

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// touch creates an empty file and the folders above it.
func touch(t *testing.T, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, nil, 0o644))
	return name
}

func TestOrderOfSearchedFolders(t *testing.T) {
	root := t.TempDir()
	p := places{
		executable: filepath.Join(root, "app", "bin", "otograph"),
		checkout:   filepath.Join(root, "checkout"),
		data:       filepath.Join(root, "data", "otograph", "native"),
		system:     []string{filepath.Join(root, "system")},
	}
	_, err := p.find("libwhisper", WhisperFile)
	require.ErrorIs(t, err, ErrMissing)
	for _, want := range []string{"libwhisper", "otograph native", EnvDir, filepath.Join(root, "data", "otograph", "native", "lib")} {
		assert.ErrorContains(t, err, want)
	}

	// Each place takes precedence over the previous places in this list.
	for _, dir := range []string{
		filepath.Join(root, "system"),
		filepath.Join(root, "data", "otograph", "native", "lib"),
		filepath.Join(root, "checkout", "third_party", "native", "lib"),
		filepath.Join(root, "app", "lib"),
	} {
		touch(t, dir, WhisperFile)
		got, err := p.find("libwhisper", WhisperFile)
		require.NoError(t, err)
		assert.Equal(t, dir, got)
	}

	// A folder that only holds the other library is skipped.
	ort := touch(t, root, "system", ONNXRuntimeFile)
	got, err := p.find("ONNX Runtime", ONNXRuntimeFile)
	require.NoError(t, err)
	assert.Equal(t, filepath.Dir(ort), got)

	// The environment takes precedence, even if the folder is wrong.
	p.env = filepath.Join(root, "own")
	_, err = p.find("libwhisper", WhisperFile)
	require.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, p.env)
	own := touch(t, root, "own", "lib", WhisperFile)
	got, err = p.find("libwhisper", WhisperFile)
	require.NoError(t, err)
	assert.Equal(t, filepath.Dir(own), got)
	p.env = filepath.Dir(own)
	got, err = p.find("libwhisper", WhisperFile)
	require.NoError(t, err)
	assert.Equal(t, filepath.Dir(own), got)
}

func TestCurrentFolderIsNeverUsed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	touch(t, dir, WhisperFile)
	touch(t, dir, "lib", WhisperFile)
	touch(t, dir, "third_party", "native", "lib", WhisperFile)
	_, err := places{}.find("libwhisper", WhisperFile)
	assert.ErrorIs(t, err, ErrMissing)

	t.Setenv("XDG_DATA_HOME", "relative")
	assert.NotContains(t, here().data, "relative")
}

func TestONNXRuntimeVariable(t *testing.T) {
	dir := t.TempDir()
	lib := touch(t, dir, "libonnxruntime.so.1.30")
	t.Setenv(EnvONNXRuntime, lib)
	got, err := ONNXRuntime()
	require.NoError(t, err)
	assert.Equal(t, lib, got)

	for _, wrong := range []string{filepath.Join(dir, "absent.so"), dir} {
		t.Setenv(EnvONNXRuntime, wrong)
		_, err = ONNXRuntime()
		require.ErrorIs(t, err, ErrMissing)
		assert.ErrorContains(t, err, EnvONNXRuntime)
		assert.ErrorContains(t, err, wrong)
	}
}

func TestCheckout(t *testing.T) {
	if _, file, _, _ := runtime.Caller(0); !filepath.IsAbs(file) {
		t.Skip("the paths were trimmed from this test (-trimpath)")
	}
	raw, err := os.ReadFile(filepath.Join(Checkout(), "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(raw), "module github.com/otograph/otograph\n")

	dest, err := DefaultDest() // a test runs in its package's folder, inside the checkout
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(Checkout(), "third_party", "native"), dest)
	t.Chdir(t.TempDir())
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	dest, err = DefaultDest()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(data, "otograph", "native"), dest)
}

// TestInstall runs the recipe without the network, with the already fetched
// libraries as the user's own.
func TestInstall(t *testing.T) {
	prefix := filepath.Join(Checkout(), "third_party", "native")
	ort := filepath.Join(prefix, "lib", ONNXRuntimeFile)
	for _, f := range []string{ort, filepath.Join(prefix, "include", "whisper.h"), filepath.Join(prefix, "lib", "libwhisper.so")} {
		if _, err := os.Stat(f); err != nil {
			t.Skipf("nothing to install from: %v", err)
		}
	}
	for _, tool := range []string{"bash", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	t.Setenv("WHISPER_PREFIX", prefix)
	t.Setenv("ONNXRUNTIME_LIB", ort)
	t.Setenv("NATIVE_CACHE", t.TempDir())
	dest := filepath.Join(t.TempDir(), "new folder", "native")
	var out bytes.Buffer
	require.NoError(t, Install(context.Background(), dest, "unchanged", &out), out.String())
	assert.Contains(t, out.String(), "are in "+dest)
	t.Setenv(EnvDir, dest)
	t.Setenv(EnvONNXRuntime, "")
	file, err := ONNXRuntime()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dest, "lib", ONNXRuntimeFile), file)
	dir, err := Whisper()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dest, "lib"), dir)
	t.Setenv(EnvONNXRuntime, ort)

	out.Reset()
	require.NoError(t, Install(context.Background(), dest, "unchanged", &out))
	assert.Equal(t, "native: nothing to do, they are in "+dest+"\n", out.String())

	// An impossible setting is reported, and the existing files are kept.
	t.Setenv("ONNXRUNTIME_LIB", filepath.Join(dest, "absent.so"))
	err = Install(context.Background(), dest, "unchanged", &out)
	assert.ErrorContains(t, err, "absent.so does not exist")
	assert.FileExists(t, filepath.Join(dest, "lib", WhisperFile))
	full := t.TempDir()
	touch(t, full, "thesis.txt")
	assert.ErrorContains(t, Install(context.Background(), full, "unchanged", &out), "holds something else")
	assert.FileExists(t, filepath.Join(full, "thesis.txt"))

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, Install(ended, filepath.Join(full, "native"), "unchanged", &out), context.Canceled)
}

func TestInstallCanBeStopped(t *testing.T) {
	prefix := filepath.Join(Checkout(), "third_party", "native")
	ort := filepath.Join(prefix, "lib", ONNXRuntimeFile)
	if _, err := os.Stat(ort); err != nil {
		t.Skipf("nothing to install from: %v", err)
	}
	// This compiler never finishes.
	bin, started := t.TempDir(), filepath.Join(t.TempDir(), "started")
	script := "#!/bin/sh\n[ \"$1\" = -E ] && exit 0\ntouch '" + started + "'\nsleep 600\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gcc"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("WHISPER_PREFIX", prefix)
	t.Setenv("ONNXRUNTIME_LIB", ort)
	t.Setenv("NATIVE_CACHE", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			if _, err := os.Stat(started); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	parent := t.TempDir()
	require.ErrorIs(t, Install(ctx, filepath.Join(parent, "native"), "unchanged", io.Discard), context.Canceled)
	assert.FileExists(t, started)
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, left, "no files remain")
}

func TestInstallNamesMissingTools(t *testing.T) {
	// This machine has the usual shell tools, but no compiler, apt or npm.
	bin := t.TempDir()
	for _, tool := range []string{"bash", "cat", "sha256sum", "cut", "getconf", "mkdir", "dirname", "basename", "uname", "ls", "sed", "tr", "sort", "tar", "mktemp"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skip(err)
		}
		require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
	}
	t.Setenv("PATH", bin)
	t.Setenv("NATIVE_CACHE", t.TempDir())
	t.Setenv("ONNXRUNTIME_LIB", "")
	t.Setenv("WHISPER_PREFIX", t.TempDir())
	var out bytes.Buffer
	err := Install(context.Background(), filepath.Join(t.TempDir(), "native"), "unchanged", &out)
	require.Error(t, err)
	assert.ErrorContains(t, err, "missing: gcc, npm")
	assert.ErrorContains(t, err, "apt-get install gcc npm")
	assert.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())

	t.Setenv("WHISPER_PREFIX", "")
	err = Install(context.Background(), filepath.Join(t.TempDir(), "native"), "unchanged", &out)
	assert.ErrorContains(t, err, "there is no apt here")
	assert.ErrorContains(t, err, "WHISPER_PREFIX")
}

// TestForeignLibrariesAreNotLoaded checks that an installed program ignores the
// checkout in which it was compiled, and loads no library that another user
// could have installed.
func TestForeignLibrariesAreNotLoaded(t *testing.T) {
	root := t.TempDir()
	for executable, inside := range map[string]bool{
		"/usr/local/bin/otograph": false, "": false, root + "-other/bin/otograph": false,
		filepath.Join(root, "bin", "otograph"): true, "/tmp/go-build123/b001/exe/otograph": true,
	} {
		assert.Equal(t, inside, places{executable: executable}.inside(root), executable)
	}
	dir := filepath.Join(root, "otograph", "native", "lib")
	file := touch(t, dir, WhisperFile)
	p := places{data: filepath.Dir(dir)}
	found, err := p.find("", WhisperFile)
	require.NoError(t, err)
	assert.Equal(t, dir, found)
	for _, open := range []string{dir, file} {
		info, err := os.Stat(open)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(open, info.Mode().Perm()|0o002))
		_, err = p.find("", WhisperFile)
		require.ErrorIs(t, err, ErrUntrusted)
		assert.ErrorContains(t, err, open)
		_, err = places{env: dir}.find("", WhisperFile)
		require.ErrorIs(t, err, ErrUntrusted, "named, too")
		require.NoError(t, os.Chmod(open, info.Mode().Perm()))
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	require.NoError(t, os.Chown(file, 65534, 65534))
	_, err = p.find("", WhisperFile)
	require.ErrorIs(t, err, ErrUntrusted)
	assert.ErrorContains(t, err, "belongs to user 65534")
	_, err = places{env: dir}.find("", WhisperFile)
	assert.NoError(t, err, "a folder named by the user is trusted")
}
