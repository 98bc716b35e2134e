// Package native finds the two native libraries that Otograph opens at run time,
// libwhisper (with ggml) and ONNX Runtime, and fetches them when asked to.
//
// Nothing is linked: a program that imports Otograph builds with a C compiler
// alone, starts without the libraries, and gets [ErrMissing] with what to do when
// it needs one of them. The libraries are never looked for in the current folder.
package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/otograph/otograph/internal/userdata"
)

// Environment variables that name native parts; see [Dir] and [ONNXRuntime].
const (
	// EnvDir names the folder that holds the libraries, or the folder above it
	// (the one with lib/ in it).
	EnvDir = "OTOGRAPH_NATIVE"
	// EnvONNXRuntime names one libonnxruntime file.
	EnvONNXRuntime = "ONNXRUNTIME_LIB"
)

// ErrMissing says that a native library was not found. It comes wrapped, with the
// places that were searched and what to do about it.
var ErrMissing = errors.New("native library missing")

// ErrNoCgo says that this program can't open native libraries at all. It wraps
// ErrMissing.
var ErrNoCgo = fmt.Errorf("%w: this program was built without cgo and opens none; build it with CGO_ENABLED=1 and a C compiler", ErrMissing)

// dataFolder is the name of our folder in the user's data folder.
const dataFolder = "native"

// places is where a search looks; a value, so that tests can make their own.
type places struct {
	env        string   // value of OTOGRAPH_NATIVE
	ort        string   // value of ONNXRUNTIME_LIB
	executable string   // path of the running program, symlinks resolved
	checkout   string   // the checkout this program was compiled in, if it still exists
	data       string   // dataFolder in the user's data folder
	system     []string // the loader's own folders
}

func here() places {
	p := places{
		env: os.Getenv(EnvDir), ort: os.Getenv(EnvONNXRuntime),
		system: systemDirs(),
	}
	if dir, err := userdata.Dir(dataFolder); err == nil {
		p.data = dir
	}
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		p.executable = exe
	}
	if root := Checkout(); root != "" && p.inside(root) {
		p.checkout = root
	}
	return p
}

// inside reports whether the program runs from a folder below root or is one
// that `go run` or `go test` built. An installed program must not load what
// somebody else put into the folder that it was compiled in.
func (p places) inside(root string) bool {
	if strings.Contains(p.executable, string(filepath.Separator)+"go-build") {
		return true
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	rel, err := filepath.Rel(root, p.executable)
	return p.executable != "" && err == nil && filepath.IsLocal(rel)
}

// Dir returns the absolute path of the folder that holds [WhisperFile] or
// [ONNXRuntimeFile] (normally both). The first of these that holds one is taken:
// $OTOGRAPH_NATIVE (the folder itself, or the one above its lib), ../lib beside the
// executable, third_party/native/lib of the checkout that the program was compiled
// in, if it lies there, otograph/native/lib in the user's data folder ($XDG_DATA_HOME, else
// ~/.local/share), the loader's own folders.
//
// The error wraps [ErrMissing]. A set $OTOGRAPH_NATIVE without a library is an
// error too: a wrong setting must not be answered by another library.
func Dir() (string, error) { return here().find("", WhisperFile, ONNXRuntimeFile) }

// ONNXRuntime returns the path of the ONNX Runtime library: $ONNXRUNTIME_LIB if it
// is set, else [ONNXRuntimeFile] in the folders of [Dir]'s order. The error wraps
// [ErrMissing].
func ONNXRuntime() (string, error) {
	p := here()
	if p.ort != "" {
		abs, err := filepath.Abs(p.ort)
		if err == nil {
			var st os.FileInfo
			if st, err = os.Stat(abs); err == nil && st.IsDir() {
				err = fmt.Errorf("%s is a folder", abs)
			}
		}
		if err != nil {
			return "", fmt.Errorf("%w: %s names no library file: %w", ErrMissing, EnvONNXRuntime, err)
		}
		return abs, nil
	}
	dir, err := p.find("ONNX Runtime", ONNXRuntimeFile)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, ONNXRuntimeFile), nil
}

// Whisper returns the folder that holds [WhisperFile] and its ggml plug-ins (in
// ggml/ below it), or "" where the loader finds libwhisper by its soname alone. The
// error wraps [ErrMissing].
func Whisper() (string, error) {
	p := here()
	dir, err := p.find("libwhisper", WhisperFile)
	if err != nil {
		return "", err
	}
	if loaderFinds && slices.Contains(p.system, dir) {
		return "", nil
	}
	return dir, nil
}

// find returns the first folder that holds one of files. what is for the error text.
func (p places) find(what string, files ...string) (string, error) {
	holds := func(dir string) bool {
		for _, f := range files {
			if st, err := os.Stat(filepath.Join(dir, f)); err == nil && !st.IsDir() {
				return true
			}
		}
		return false
	}
	if what == "" {
		what = "libwhisper and ONNX Runtime"
	}
	if p.env != "" {
		abs, err := filepath.Abs(p.env)
		if err != nil {
			return "", fmt.Errorf("%w: %s=%s: %w", ErrMissing, EnvDir, p.env, err)
		}
		for _, dir := range []string{abs, filepath.Join(abs, "lib")} {
			if holds(dir) {
				return dir, p.trusted(dir, files, true)
			}
		}
		return "", fmt.Errorf("%w: %s=%s holds no %s; correct it, or unset it and run `otograph native`",
			ErrMissing, EnvDir, p.env, strings.Join(files, " or "))
	}
	var dirs []string
	if p.executable != "" {
		dirs = append(dirs, filepath.Join(filepath.Dir(filepath.Dir(p.executable)), "lib"))
	}
	if p.checkout != "" {
		dirs = append(dirs, filepath.Join(p.checkout, "third_party", "native", "lib"))
	}
	if p.data != "" {
		dirs = append(dirs, filepath.Join(p.data, "lib"))
	}
	for _, dir := range dirs {
		if holds(dir) {
			return dir, p.trusted(dir, files, false)
		}
	}
	for _, dir := range p.system {
		if holds(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: %s not found in %s or the system's folders; run `otograph native` (or `go run github.com/otograph/otograph/third_party/fetch`), or set %s to the folder that holds %s",
		ErrMissing, what, strings.Join(dirs, ", "), EnvDir, strings.Join(files, " and "))
}

// ErrUntrusted says that a native library, or its folder, could have been put
// there by somebody else. It comes wrapped, with the path and what to do.
var ErrUntrusted = errors.New("native library is not trusted")

// trusted checks a folder and those of files that it holds: nobody but root and
// this user may own them, unless the user named the folder, and not everybody
// may write to them.
func (p places) trusted(dir string, files []string, named bool) error {
	for _, path := range append([]string{""}, files...) {
		path = filepath.Join(dir, path)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if openToAll(info) {
			return fmt.Errorf("%w: everybody may write to %s: run `chmod o-w` on it", ErrUntrusted, path)
		}
		if owner, ok := ownerOf(info); ok && !named && owner != 0 && owner != os.Geteuid() {
			return fmt.Errorf("%w: %s belongs to user %d, neither to root nor to this user: run `otograph native`, or set %s to the folder if you trust its owner", ErrUntrusted, path, owner, EnvDir)
		}
	}
	return nil
}

// Checkout returns the root of the source tree that this program was compiled in,
// "" when that folder is gone, is a read-only module cache, or was trimmed from the
// program (-trimpath).
func Checkout() string { return checkout() }

var checkout = sync.OnceValue(func() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file))) // internal/native/native.go
	if strings.Contains(filepath.Base(root), "@") {
		return "" // unpacked by the go command: nothing can be put there
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return ""
	}
	return root
})
