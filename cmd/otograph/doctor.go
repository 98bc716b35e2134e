package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/otograph/otograph/asr/whisper"
	"github.com/otograph/otograph/asr/whispercpp"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/system/native"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/web"
)

type doctorCmd struct {
	JSON bool `help:"Print the findings as JSON."`

	modelFlags
}

// finding is one line of the doctor's report.
type finding struct {
	Part  string `json:"part"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`           // the result
	ToDo  string `json:"to_do,omitempty"` // a suggested remedy
}

func (c *doctorCmd) Run(ctx context.Context) error {
	_ = driverFault(ctx, recognizers.DeviceAuto) // devices reports it
	findings := []finding{c.program(), c.page(), c.machine(), c.whisper(), c.devices(), c.onnxRuntime(), c.ffmpeg(), c.sandbox()}
	findings = append(findings, c.models()...)
	if c.JSON {
		if err := printJSON(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			say("%s  %-14s %s\n", map[bool]string{true: "ok  ", false: "MISS"}[f.OK], f.Part, f.Found)
			if f.ToDo != "" {
				say("      %-14s → %s\n", "", f.ToDo)
			}
		}
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return !f.OK }) {
		return errReported
	}
	return nil
}

func (doctorCmd) program() finding {
	return finding{Part: "program", OK: true, Found: "otograph " + version + ", " + runtime.Version()}
}

func (doctorCmd) page() finding {
	if web.Built() {
		return finding{Part: "page", OK: true, Found: "in this binary: `otograph serve` offers it, --format html writes it"}
	}
	return finding{Part: "page", OK: true, Found: "not in this binary: no page of `otograph serve`, no --format html", ToDo: "build with `make build` where npm is installed"}
}

func (doctorCmd) machine() finding {
	found := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if n := runtime.GOMAXPROCS(0); n != runtime.NumCPU() {
		found += fmt.Sprintf(", %d may be used", n)
	}
	f := finding{Part: "machine", OK: true, Found: found}
	switch kernels, err := whisper.Kernels(); {
	case err == nil:
		f.Found += ", standard tier with " + kernels
	case os.Getenv(whisper.EnvKernels) != "":
		f.OK, f.Found, f.ToDo = false, err.Error(), "correct or unset "+whisper.EnvKernels
	}
	return f
}

// fetchNative returns a remedy for a native library that could not be opened.
func fetchNative(err error) string {
	if errors.Is(err, native.ErrNoCgo) {
		return "build otograph with cgo: CGO_ENABLED=1, and a C compiler"
	}
	return "run `otograph native` (in a checkout: `make setup`)"
}

// whisper reports on libwhisper, which only a GPU needs.
func (doctorCmd) whisper() finding {
	f := finding{Part: "whisper.cpp", OK: true}
	v, err := whispercpp.OpenLibrary()
	switch {
	case errors.Is(err, native.ErrMissing):
		f.Found = "not installed; only a GPU needs it"
		return f
	case err != nil:
		f.OK, f.Found, f.ToDo = false, err.Error(), fetchNative(err)
		return f
	}
	f.Found = "libwhisper " + v + ", for a GPU"
	if dir, err := native.Whisper(); err == nil {
		f.Found += ", from " + cmp.Or(dir, "the system's libraries")
	}
	return f
}

func (doctorCmd) onnxRuntime() finding {
	f := finding{Part: "ONNX Runtime"}
	v, err := ort.Version()
	if err != nil {
		f.Found, f.ToDo = err.Error(), fetchNative(err)
		return f
	}
	f.OK, f.Found = true, v
	if path, err := native.ONNXRuntime(); err == nil {
		f.Found += ", from " + path
	}
	return f
}

func (doctorCmd) ffmpeg() finding {
	s := audio.Sandbox()
	f := finding{Part: "ffmpeg", OK: s.FFmpeg != "", Found: s.Version + ", " + s.FFmpeg}
	if !f.OK {
		f.Found = "not found: WAV files can be read, compressed formats cannot"
		f.ToDo = "install ffmpeg (Debian: apt-get install ffmpeg)"
	}
	return f
}

func (doctorCmd) sandbox() finding {
	s := audio.Sandbox()
	f := finding{Part: "decoder cage", OK: s.FFmpeg == "" || s.Works, Found: s.Strength(), ToDo: strings.Join(s.Problems, "; ")}
	if s.FFmpeg == "" {
		f.Found, f.ToDo = "nothing to cage", ""
	}
	return f
}

func (c *doctorCmd) models() []finding {
	set, err := c.open()
	if err != nil {
		return []finding{{Part: "models", Found: err.Error(), ToDo: "see `otograph models --help`"}}
	}
	var out []finding
	for _, role := range models.Roles() {
		for _, m := range set.All(role) {
			f := finding{Part: string(role), OK: true, Found: fmt.Sprintf("%s (%s)", m.Name, m.Contract)}
			if len(m.Languages) > 0 && !(role == models.RoleStandard && knowsAll(set)) {
				f.Found += ", " + strings.Join(m.Languages, " ")
			}
			where := cmp.Or(m.Main().Path, "embedded")
			if m.Demo {
				where = "embedded demo model"
			}
			f.Found += ", " + where
			out = append(out, f)
		}
		switch _, ok := set.Role(role); {
		case !ok && role.Optional():
			out = append(out, finding{Part: string(role), OK: true, Found: "no model; it is optional"})
		case !ok:
			out = append(out, finding{Part: string(role), Found: "no model", ToDo: "`otograph models pull`, or --" + string(role) + "-model FILE"})
		}
	}
	for _, ignored := range set.Ignored {
		out = append(out, finding{Part: "not used", OK: true, Found: fmt.Sprint(ignored)})
	}
	return out
}

type nativeCmd struct {
	To   string `placeholder:"DIR" help:"Destination folder; default: where the program looks for them."`
	With string `enum:"vulkan,none,unchanged" default:"unchanged" placeholder:"PLUGIN" help:"vulkan adds ggml's plug-in for GPUs; none removes it."`
}

func (c *nativeCmd) Run(ctx context.Context) error {
	return native.Install(ctx, c.To, c.With, os.Stderr)
}
