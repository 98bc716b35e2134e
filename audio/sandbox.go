package audio

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/system/cage"
)

// SandboxState describes how the ffmpeg process is confined here. Always in
// force are an explicit demuxer, lists of allowed demuxers, protocols and
// decoders, a single input descriptor, no standard input, an empty environment,
// a process group that is killed as a whole, and a wall-clock limit.
type SandboxState struct {
	FFmpeg  string // path of the decoder; empty if it is missing
	Version string // of the decoder
	Works   bool   // ffmpeg could be started in the sandbox

	// Version of the kernel's Landlock interface in use; at 0 (none), the
	// process can read any file that its user can.
	Landlock int
	// Network, processes and writing are denied: a decoder needs none.
	Seccomp             bool
	NoNewPrivileges     bool // set-user-id programs gain no privileges
	CapabilitiesDropped bool // root's capabilities are dropped (also true if there are none)
	Limits              bool // address space, processor time, file size, descriptors, core files
	Namespaces          bool // no network devices, and separate System V objects

	Problems []string // missing protections and how to get them
}

// Strength returns a short description for people: "landlock v6, seccomp, no
// new privileges, no capabilities, resource limits".
func (s SandboxState) Strength() string {
	var parts []string
	if s.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("landlock v%d", s.Landlock))
	}
	for _, p := range []struct {
		on   bool
		name string
	}{{s.Seccomp, "seccomp"}, {s.NoNewPrivileges, "no new privileges"}, {s.CapabilitiesDropped, "no capabilities"}, {s.Limits, "resource limits"}, {s.Namespaces, "namespaces"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

var versionLine = regexp.MustCompile(`^ffmpeg version (\S+)`)

// Sandbox builds the sandbox, starts ffmpeg in it to get its version, and returns
// the state. Only the first call of a process does so, in about a tenth of a second.
func Sandbox() SandboxState { return builtOnce() }

var builtOnce = sync.OnceValue(func() SandboxState { return sandbox(Options{}) })

func sandbox(o Options) SandboxState {
	bin, missing := findFFmpeg(o)
	var s SandboxState
	if missing != nil {
		s.Problems = append(s.Problems, missing.Error())
		return s
	}
	s.FFmpeg = bin
	for _, landlock := range []bool{true, false} {
		version, state, err := ffmpegVersion(context.Background(), bin, landlock)
		if err == nil {
			s.Works, s.Version = true, version
			s.Landlock, s.Seccomp, s.NoNewPrivileges = state.Landlock, state.Seccomp && !isScript(bin), state.NoNewPrivileges
			s.CapabilitiesDropped, s.Limits, s.Namespaces = state.CapabilitiesDropped, state.Limits, state.Namespaces
			if !landlock {
				s.Problems = append(s.Problems, bin+" cannot run under Landlock (a wrapper script, or libraries in an unusual place): name the program itself")
			}
			break
		}
		if !landlock {
			s.Problems = append(s.Problems, fmt.Sprintf("%s does not start or is not ffmpeg: %v", bin, err))
		}
	}
	if s.Landlock == 0 {
		s.Problems = append(s.Problems, "no Landlock, so the decoder can read other files; requires Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK")
	}
	if !s.Seccomp {
		s.Problems = append(s.Problems, "no seccomp filter, so the decoder can use the network; requires Linux on amd64 or arm64")
	}
	return s
}

// ffmpegVersion starts ffmpeg in the sandbox and reads its version.
func ffmpegVersion(ctx context.Context, bin string, landlock bool) (version string, state cage.State, err error) {
	spec := cage.Spec{Bin: bin, Args: []string{"-version"}, Memory: childMemory, CPU: cpuSeconds(defaultMaxDecodeTime), Landlock: landlock} // a decoder's
	state, err = caged{spec, 20 * time.Second}.run(ctx, func(string) {}, func(out io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(out, 1<<16))
		if m := versionLine.FindSubmatch(b); m != nil {
			version = string(m[1])
		}
		return err
	})
	if err == nil && version == "" {
		err = fmt.Errorf("%s -version does not print the name ffmpeg", bin)
	}
	return version, state, err
}
