// Package native finds the two native libraries that Otograph opens at run
// time, libwhisper (with ggml) and ONNX Runtime, and fetches them on request.
//
// Nothing is linked. A program that imports Otograph builds with only a C
// compiler and starts without the libraries. If it needs one, it gets
// [ErrMissing] with instructions. The current folder is never searched.
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

	"github.com/otograph/otograph/internal/system/host"
)

// Environment variables for native parts; see [ONNXRuntime].
const (
	// EnvDir is the variable for the folder that holds the libraries, or for
	// its parent (the folder with lib/ in it).
	EnvDir = "OTOGRAPH_NATIVE"
	// EnvONNXRuntime is the variable for the path of libonnxruntime.
	EnvONNXRuntime = "ONNXRUNTIME_LIB"
)

// ErrMissing is returned if a native library was not found. It is wrapped in an
// error with the searched places and instructions.
var ErrMissing = errors.New("native library missing")

// ErrNoCgo is returned if no native library can be opened. It wraps ErrMissing.
var ErrNoCgo = fmt.Errorf("%w: this program was built without cgo and opens none; build it with CGO_ENABLED=1 and a C compiler", ErrMissing)

// dataFolder is the name of our folder in the user's data folder.
const dataFolder = "native"

// places holds the places to search, as a value for tests.
type places struct {
	env        string   // value of OTOGRAPH_NATIVE
	ort        string   // value of ONNXRUNTIME_LIB
	executable string   // path of the running program, symlinks resolved
	checkout   string   // the checkout in which this program was compiled, if it still exists
	data       string   // dataFolder in the user's data folder
	system     []string // folders that the loader searches by default
}

func here() places {
	p := places{env: os.Getenv(EnvDir), ort: os.Getenv(EnvONNXRuntime), system: systemDirs()}
	if dir, err := host.DataDir(dataFolder); err == nil {
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

// inside reports whether the program is run from a folder below root, or was
// built by `go run` or `go test`. An installed program must not load files that
// another user put into the folder in which it was compiled.
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

// ONNXRuntime returns the path of the ONNX Runtime library: $ONNXRUNTIME_LIB if
// it is set, otherwise [ONNXRuntimeFile] in the first of these folders that
// holds it: $OTOGRAPH_NATIVE (the folder itself, or its parent), ../lib relative
// to the executable, third_party/native/lib of the checkout in which the program
// was compiled if the program is in it, otograph/native/lib in the user's data
// folder ($XDG_DATA_HOME, or else ~/.local/share), and the folders that the
// loader searches by default.
//
// The error wraps [ErrMissing], also if $OTOGRAPH_NATIVE is set but holds no
// library: a wrong setting must not silently select another one.
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

// Whisper returns the folder of [WhisperFile] and its ggml plug-ins (in ggml/),
// or "" if the loader finds libwhisper. The error wraps [ErrMissing].
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

// find returns the first folder with file; the error mentions what.
func (p places) find(what, file string) (string, error) {
	holds := func(dir string) bool {
		st, err := os.Stat(filepath.Join(dir, file))
		return err == nil && !st.IsDir()
	}
	if p.env != "" {
		abs, err := filepath.Abs(p.env)
		if err != nil {
			return "", fmt.Errorf("%w: %s=%s: %w", ErrMissing, EnvDir, p.env, err)
		}
		for _, dir := range []string{abs, filepath.Join(abs, "lib")} {
			if holds(dir) {
				return dir, p.trusted(dir, file, true)
			}
		}
		return "", fmt.Errorf("%w: %s=%s holds no %s; correct it, or unset it and run `otograph native`",
			ErrMissing, EnvDir, p.env, file)
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
			return dir, p.trusted(dir, file, false)
		}
	}
	for _, dir := range p.system {
		if holds(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: %s not found in %s or the system's folders; run `otograph native` (or `go run github.com/otograph/otograph/cmd/otograph native`), or set %s to the folder that holds %s",
		ErrMissing, what, strings.Join(dirs, ", "), EnvDir, file)
}

// ErrUntrusted is returned if another user could have installed a library or
// its folder. It is wrapped with the path and instructions.
var ErrUntrusted = errors.New("native library is not trusted")

// trusted checks a folder and a file in it. They must be owned by root or this
// user, unless the user named the folder, and must not be world-writable.
func (p places) trusted(dir, file string, named bool) error {
	for _, path := range []string{dir, filepath.Join(dir, file)} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if openToAll(info) {
			return fmt.Errorf("%w: %s is world-writable: run `chmod o-w` on it", ErrUntrusted, path)
		}
		if owner, ok := ownerOf(info); ok && !named && owner != 0 && owner != os.Geteuid() {
			return fmt.Errorf("%w: %s belongs to user %d, neither to root nor to this user: run `otograph native`, or set %s to the folder if you trust its owner", ErrUntrusted, path, owner, EnvDir)
		}
	}
	return nil
}

// Checkout returns the root of the source tree in which this program was
// compiled, or "" if that folder no longer exists, is a read-only module cache,
// or was trimmed from the program (-trimpath).
func Checkout() string { return checkout() }

var checkout = sync.OnceValue(func() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(file)
	for _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(root, "go.mod")) {
		if root == filepath.Dir(root) {
			return ""
		}
		root = filepath.Dir(root)
	}
	if strings.Contains(filepath.Base(root), "@") {
		return "" // unpacked by the go command, so nothing can be installed there
	}
	return root
})
