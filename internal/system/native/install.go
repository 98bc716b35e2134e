package native

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/otograph/otograph/internal/system/host"
)

// Install installs the native libraries into the folder dest (lib/, include/,
// VERSIONS) unless they are there: it unpacks the fetch recipe into a temporary
// folder and runs it with bash. Its few lines of output go to out, also if
// everything is installed already. An empty dest is [DefaultDest]. with selects
// ggml's plug-ins in addition to the processor's: "vulkan" for GPUs, "none", or
// "unchanged" for the already installed ones.
//
// The recipe uses the sources configured on this machine (apt's mirror, npm's
// registry), checks the digest of every file, and needs no root. On systems
// other than Linux there is no recipe; only ONNX Runtime is fetched, from npm's
// registry. The error names the missing parts. If ctx is canceled, the recipe
// is stopped and dest stays unchanged.
func Install(ctx context.Context, dest, with string, out io.Writer) error {
	if err := install(ctx, dest, with, out); err != nil {
		return fmt.Errorf("native libraries: %w", err)
	}
	return nil
}

func install(ctx context.Context, dest, with string, out io.Writer) error {
	if dest == "" {
		var err error
		if dest, err = DefaultDest(); err != nil {
			return err
		}
	}
	dest, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		if with == "vulkan" {
			return errors.New("ggml's plug-in for Vulkan is fetched on Linux only")
		}
		return installPackage(ctx, dest, out)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return fmt.Errorf("bash, which runs the fetch recipe, is missing: install it, or set %s to a folder that holds %s and %s",
			EnvDir, WhisperFile, ONNXRuntimeFile)
	}
	dir, err := os.MkdirTemp("", "otograph-native-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, recipeFiles); err != nil {
		return err
	}
	output := &lastLine{to: out}
	cmd := exec.CommandContext(ctx, bash, filepath.Join(dir, "recipe", "fetch.sh"), dest)
	cmd.Stdout, cmd.Stderr = output, output
	if with != "unchanged" {
		cmd.Env = append(os.Environ(), "NATIVE_WITH="+with)
	}
	cmd.WaitDelay = 5 * time.Second
	host.OwnGroup(cmd)
	// The script can remove its temporary folder then.
	cmd.Cancel = func() error { return host.SignalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && output.line != "":
		// Repeat the recipe's instructions for callers that discard out.
		return errors.New(strings.TrimPrefix(output.line, "native: "))
	case err != nil:
		return fmt.Errorf("the fetch recipe failed: %w", err)
	case output.line == "":
		_, err = fmt.Fprintf(out, "native: nothing to do, they are in %s\n", dest)
		return err
	}
	return nil
}

// installPackage fetches only ONNX Runtime, unless the user has set its path.
func installPackage(ctx context.Context, dest string, out io.Writer) error {
	p := here()
	if p.ort != "" {
		file, err := ONNXRuntime()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "native: nothing to do, %s is %s\n", EnvONNXRuntime, file)
		return err
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	pins, _ := onnxRuntimePins(platform)
	return npm{platform: platform, registry: registry(ctx), pins: pins, places: p}.install(ctx, dest, out)
}

// DefaultDest returns Install's default folder: third_party/native of the
// checkout in which this program was compiled if the working folder is inside
// it, or else otograph/native in the user's data folder.
func DefaultDest() (string, error) {
	if root := Checkout(); root != "" {
		if wd, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(root, wd); err == nil && filepath.IsLocal(rel) {
				return filepath.Join(root, "third_party", "native"), nil
			}
		}
	}
	dir, err := host.DataDir(dataFolder)
	if err != nil {
		return "", fmt.Errorf("%w: name a folder, or set XDG_DATA_HOME", err)
	}
	return dir, nil
}

// lastLine forwards the output and keeps the last line that is not empty.
type lastLine struct {
	to      io.Writer
	partial []byte
	line    string
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		i := bytes.IndexByte(l.partial, '\n')
		if i < 0 {
			break
		}
		if s := strings.TrimSpace(string(l.partial[:i])); s != "" {
			l.line = s
		}
		l.partial = l.partial[i+1:]
	}
	if len(l.partial) > 1<<16 { // a line without an end is not worth keeping
		l.partial = nil
	}
	return l.to.Write(p)
}

// recipeFiles holds the script that fetches libwhisper, ggml and ONNX Runtime.
//
//go:embed recipe
var recipeFiles embed.FS

// pins identify ONNX Runtime within npm's package.
type pins struct {
	Name, Version string
	File          string // the platform's file in the archive
	SHA256        string // of the file
}

// onnxRuntimePins returns the pins for a platform such as "darwin/arm64"; ok is
// false if the package does not support it.
func onnxRuntimePins(platform string) (p pins, ok bool) {
	text, err := recipeFiles.ReadFile("recipe/src/onnxruntime.pins")
	if err != nil {
		return p, false
	}
	for line := range strings.Lines(string(text)) {
		switch words := strings.Fields(line); {
		case len(words) == 4 && words[0] == "package":
			p.Name, p.Version = words[1], words[2]
		case len(words) == 3 && words[0] == platform:
			p.File, p.SHA256, ok = words[1], words[2], true
		}
	}
	return p, ok && p.Name != ""
}
