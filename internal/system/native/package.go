package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/system/fetch"
)

// Limits of the archive, which has 113 MB in a few dozen files, 300 MB unpacked.
const (
	mostFiles = 10_000
	largest   = 1 << 30 // bytes, unpacked
)

// npm fetches ONNX Runtime from its npm package on systems other than Linux
// (whose recipe also fetches libwhisper). It needs neither npm nor a shell.
type npm struct {
	platform string // such as "darwin/arm64"
	registry string
	pins     pins
	places   places // places to search for libwhisper
}

// install installs the library into dest/lib unless it is already there.
func (n npm) install(ctx context.Context, dest string, out io.Writer) error {
	if n.pins.File == "" {
		return fmt.Errorf("the package %s %s holds no ONNX Runtime for %s: set %s to your own library",
			n.pins.Name, n.pins.Version, n.platform, EnvONNXRuntime)
	}
	lib := filepath.Join(dest, "lib", ONNXRuntimeFile)
	if sum, _, err := fetch.HashFile(lib); err == nil && sum == n.pins.SHA256 {
		_, err := fmt.Fprintf(out, "native: nothing to do, ONNX Runtime is in %s\n%s", dest, n.whisper())
		return err
	}
	if err := ours(dest); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "native: getting ONNX Runtime (113 MB) from %s\n", n.registry); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		return err
	}
	if err := n.fetch(ctx, lib); err != nil {
		return fmt.Errorf("ONNX Runtime %s from %s: %w; or set %s to your own library", n.pins.Version, n.registry, err, EnvONNXRuntime)
	}
	facts := fmt.Sprintf("onnxruntime %s %s npm\n", n.pins.Version, n.pins.SHA256)
	if err := os.WriteFile(filepath.Join(dest, "VERSIONS"), []byte(facts), 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "native: onnxruntime %s is in %s\n%s", n.pins.Version, dest, n.whisper())
	return err
}

// partial is the prefix of the folder of an unfinished download.
const partial = ".part-"

// ours returns an error if a folder holds other content.
func ours(dest string) error {
	inside, err := os.ReadDir(dest)
	if errors.Is(err, os.ErrNotExist) || err == nil && (len(inside) == 0 || unfinished(dest, inside)) {
		return nil
	}
	if err == nil {
		if _, err = os.Stat(filepath.Join(dest, "VERSIONS")); err == nil {
			return nil
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s holds something else: name an empty or a new folder", dest)
	}
	return err
}

// unfinished reports whether a folder only has remains of a failed fetch.
func unfinished(dest string, inside []os.DirEntry) bool {
	if len(inside) != 1 || inside[0].Name() != "lib" || !inside[0].IsDir() {
		return false
	}
	parts, err := os.ReadDir(filepath.Join(dest, "lib"))
	return err == nil && !slices.ContainsFunc(parts, func(e os.DirEntry) bool {
		return !e.IsDir() || !strings.HasPrefix(e.Name(), partial)
	})
}

// whisper describes where libwhisper is, or how to get it.
func (n npm) whisper() string {
	if strings.HasPrefix(n.platform, "windows/") {
		return "native: on Windows libwhisper is not opened, so no GPU computes\n"
	}
	dir, err := n.places.find("libwhisper", WhisperFile)
	if err != nil {
		return "native: libwhisper is missing, which only a GPU needs: `brew install whisper-cpp`, or set " +
			EnvDir + " to a folder with both libraries\n"
	}
	return "native: libwhisper is in " + dir + "\n"
}

// fetch writes the library if it matches the pinned digest.
func (n npm) fetch(ctx context.Context, lib string) error {
	work, err := os.MkdirTemp(filepath.Dir(lib), partial+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	archive, file := filepath.Join(work, "archive"), filepath.Join(work, "library")
	address, err := n.archive(ctx, filepath.Join(work, "answer"))
	if err != nil {
		return err
	}
	if _, err := fetch.New(fetch.Fetcher{}).Fetch(ctx, fetch.File{Name: n.pins.Name, URL: address}, archive); err != nil {
		return err
	}
	err = fetch.Unpack(ctx, archive, work, fetch.ArchiveLimits{Files: mostFiles, Bytes: largest}, func(name string) string {
		if name == n.pins.File {
			return filepath.Base(file)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if _, err := fetch.Check(fetch.File{Name: n.pins.File, SHA256: n.pins.SHA256}, file); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the archive holds no %s", n.pins.File)
	} else if err != nil {
		return err
	}
	return os.Rename(file, lib)
}

// archive asks the registry for the address of the archive; the response is
// stored in file.
func (n npm) archive(ctx context.Context, file string) (string, error) {
	facts := fetch.File{Name: n.pins.Name, URL: strings.TrimSuffix(n.registry, "/") + "/" + path.Join(n.pins.Name, n.pins.Version)}
	if _, err := fetch.New(fetch.Fetcher{Attempts: 1}).Fetch(ctx, facts, file); err != nil {
		return "", err
	}
	answer, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	var about struct{ Dist struct{ Tarball string } }
	if err := json.NewDecoder(io.LimitReader(answer, 1<<20)).Decode(&about); err != nil {
		return "", fmt.Errorf("the registry's answer: %w", err)
	}
	if about.Dist.Tarball == "" {
		return "", errors.New("the registry names no archive")
	}
	return about.Dist.Tarball, nil
}

// registry returns the registry configured for npm, or npm's default.
func registry(ctx context.Context) string {
	if url := os.Getenv("npm_config_registry"); url != "" {
		return url
	}
	if tool, err := exec.LookPath("npm"); err == nil {
		answer, err := exec.CommandContext(ctx, tool, "config", "get", "registry").Output()
		if url := strings.TrimSpace(string(answer)); err == nil && strings.HasPrefix(url, "http") {
			return url
		}
	}
	return "https://registry.npmjs.org"
}
