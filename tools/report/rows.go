package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// row is one comparison: the commands of both programs.
type row struct {
	what, against   string
	want            float64
	models          []string // synthetic models of both, such as "base-f16"
	reference, ours []string
	peer            bool // the programs and sounds of peer are needed
	warm            bool // only the second run within the reference counts
}

// setup holds the inputs of the rows (programs, models and sounds) in one
// folder.
type setup struct {
	dir, native, otograph, whisper, steps string
	peer                                  peer
	sherpa                                func(more ...string) []string // the command, or nil if sherpa-onnx is missing
	detector                              string                        // sherpa's model
}

// sounds are cut from the bundled recording or repeat it; the values are
// seconds.
var sounds = map[string]int{"5 s": 5, "60 s": 60, "10 min": 604, "60 min": 3600}

// prepare builds the programs and generates the sounds.
func prepare(ctx context.Context, dir string) (*setup, error) {
	native, err := filepath.Abs("third_party/native/lib")
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &setup{
		dir: dir, native: native, otograph: filepath.Join(dir, "otograph"), whisper: filepath.Join(dir, "whisper_full"),
		steps: filepath.Join(dir, "steps"), peer: peer(filepath.Join(dir, "peer")),
	}
	for _, args := range [][]string{
		{"go", "build", "-o", b.otograph, "./cmd/otograph"},
		{"go", "build", "-C", "tools", "-o", b.steps, "./steps"},
		{
			"gcc", "-O2", "-I" + native + "/../include", "tools/ref/whisper_full.c", "-o", b.whisper, "-L" + native,
			"-Wl,-rpath," + native, "-Wl,--disable-new-dtags", "-lwhisper", "-lggml", "-lggml-base",
		},
	} {
		if err := do(ctx, args...); err != nil {
			return nil, err
		}
	}
	for name, seconds := range sounds {
		start, length := "0", fmt.Sprint(seconds)
		if seconds < 10 {
			start = "5.5" // speech
		}
		for _, form := range [][]string{{"-f", "f32le", b.sound(name, "f32")}, {"-c:a", "pcm_s16le", b.sound(name, "wav")}} {
			if _, err := os.Stat(form[len(form)-1]); err == nil {
				continue
			}
			args := append([]string{
				"ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-ss", start, "-i", "testdata/conversation.flac",
				"-t", length, "-ac", "1", "-ar", "16000",
			}, form...)
			if err := do(ctx, args...); err != nil {
				return nil, err
			}
		}
	}
	b.findSherpa()
	return b, nil
}

// findSherpa sets the command of sherpa-onnx if its package and models are in
// the folder that SHERPA_BENCH names: node_modules, silero_vad.onnx, ctc.onnx,
// tokens.txt and speaker.onnx. tools/ref/sherpa.js names their sources. The
// command detects speech; further arguments add recognition and voice vectors.
func (b *setup) findSherpa() {
	dir := os.Getenv("SHERPA_BENCH")
	if dir == "" {
		return
	}
	b.detector = filepath.Join(dir, "silero_vad.onnx")
	command := []string{
		"env", "NODE_PATH=" + filepath.Join(dir, "node_modules"),
		"LD_LIBRARY_PATH=" + filepath.Join(dir, "node_modules/sherpa-onnx-linux-x64"), "node", "tools/ref/sherpa.js",
		"vad=" + b.detector, "threads=2", "sound=" + b.sound("10 min", "wav"),
	}
	b.sherpa = func(more ...string) []string {
		for i, arg := range more {
			name, file, _ := strings.Cut(arg, "=")
			more[i] = name + "=" + filepath.Join(dir, file)
		}
		return append(slices.Clone(command), more...)
	}
}

func do(ctx context.Context, args ...string) error {
	if said, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.500s", strings.Join(args, " "), err, said)
	}
	return nil
}

func (b *setup) sound(name, kind string) string {
	return filepath.Join(b.dir, strings.ReplaceAll(name, " ", "")+"."+kind)
}

func (b *setup) shape(model string) string {
	return filepath.Join(b.dir, "shape-"+model+"-100.bin")
}

// model generates the synthetic models that do not exist yet.
func (b *setup) model(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := os.Stat(b.shape(name)); err == nil {
			continue
		}
		size, kind, _ := strings.Cut(name, "-")
		if err := do(ctx, "go", "run", "-C", "tools", "./shape", "-size", size, "-type", kind, "-seconds", "0", b.dir); err != nil {
			return err
		}
	}
	return nil
}

// rows lists the comparisons, the most expensive last.
func (b *setup) rows() []row {
	const library = "`whisper_full`"
	transcribe := func(sound string, more ...string) []string {
		return append([]string{b.otograph, "transcribe", "-q", "--no-cascade", "-l", "en"}, append(more, b.sound(sound, "wav"))...)
	}
	bare := []string{"--enable-diarize=false", "--enable-audio-events=false"}
	shaped := func(sound, model string) []string {
		return transcribe(sound, append([]string{"--optimize=false", "--standard-model", b.shape(model)}, bare...)...)
	}
	full := func(sound, model string) []string {
		// Spinning threads would count as processor time, to whisper.cpp's
		// disadvantage.
		return []string{"env", "OMP_WAIT_POLICY=passive", b.whisper, b.shape(model), b.sound(sound, "f32"), "beam=5", "threads=2", "runs=1", "plugins=" + b.native + "/ggml"}
	}
	against := func(sound, ours, theirs string, want float64) row {
		what := ours + ", " + sound
		if ours != theirs {
			what += ", against " + theirs
		}
		return row{what: what, against: library, want: want, models: []string{ours, theirs}, reference: full(sound, theirs), ours: shaped(sound, ours)}
	}
	demo := func(sound, optimize string) []string {
		return transcribe(sound, append([]string{"--demo", "--optimize=" + optimize}, bare...)...)
	}
	list := []row{
		{what: "optimized tier, 5 s, everything on", ours: transcribe("5 s", "--demo")},
		{what: "optimized tier, 60 s", against: "the standard tier, demo models", want: 10, reference: demo("60 s", "false"), ours: demo("60 s", "true")},
		{what: "optimized tier, 10 min", against: "the standard tier, demo models", want: 10, reference: demo("10 min", "false"), ours: demo("10 min", "true")},
		against("5 s", "base-f16", "base-f16", 1.05),
		{
			what: "base-q8_0, 60 s", against: "our base-f16", models: []string{"base-q8_0", "base-f16"},
			reference: shaped("60 s", "base-f16"), ours: shaped("60 s", "base-q8_0"),
		},
		against("60 s", "tiny-f16", "tiny-f16", 0),
		against("60 s", "base-f16", "base-f16", 0),
		against("10 min", "base-f16", "base-f16", 1.8),
		against("60 s", "small-f16", "small-f16", 0),
		against("60 s", "small-q8_0", "small-f16", 2.6),
		against("10 min", "small-f16", "small-f16", 2),
		against("60 min", "base-f16", "base-f16", 0),
	}
	if b.sherpa != nil {
		const other = "sherpa-onnx"
		all := func() []string { return b.sherpa("ctc=ctc.onnx", "tokens=tokens.txt", "speaker=speaker.onnx") }
		steps := func(more ...string) []string {
			return append(append([]string{b.steps}, more...), b.detector, b.sound("10 min", "wav"))
		}
		list = append(
			list,
			row{what: "VAD alone, 10 min", against: other, want: 5.8, reference: b.sherpa(), ours: steps("-only-vad")},
			row{what: "VAD, recognition, voice vectors, the same steps, 10 min", against: other, want: 3.2, reference: all(), ours: steps()},
			row{
				what: "all of Otograph but events, 10 min", against: other + "'s three steps", reference: all(),
				ours: transcribe("10 min", "--demo", "--enable-audio-events=false"),
			},
		)
	}
	return list
}
