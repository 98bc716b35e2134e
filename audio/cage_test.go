package audio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/system/cage"
	"github.com/otograph/otograph/spec"
)

// inCage runs a shell command in the sandbox instead of ffmpeg.
func inCage(t *testing.T, input *os.File, script string, l caged) (out string, err error) {
	t.Helper()
	return inCageWith(t, input, script, l, true)
}

func inCageWith(t *testing.T, input *os.File, script string, l caged, landlock bool) (out string, err error) {
	t.Helper()
	bash, lookErr := exec.LookPath("bash")
	if lookErr != nil {
		t.Skip(lookErr)
	}
	bash, lookErr = filepath.EvalSymlinks(bash)
	require.NoError(t, lookErr)
	if l.Memory == 0 {
		l.wall, l.Memory, l.CPU = time.Minute, childMemory, 10
	}
	l.Bin, l.Args, l.Input, l.Landlock = bash, []string{"-c", script}, input, landlock
	_, err = l.run(t.Context(), func(s string) { t.Log(s) }, func(r io.Reader) error {
		b, err := io.ReadAll(r)
		out = string(b)
		return err
	})
	return out, err
}

// TestCage proves that the child can only read its input: it can't write, use
// the network or start processes.
func TestCage(t *testing.T) {
	s := Sandbox()
	if runtime.GOOS != "linux" || s.Landlock == 0 || !s.Seccomp {
		t.Skipf("this kernel does not grant the whole cage: %+v", s)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dir := t.TempDir()
	secret, input := filepath.Join(dir, "secret"), filepath.Join(dir, "input")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o644))
	require.NoError(t, os.WriteFile(input, []byte("recording"), 0o644))
	f, err := os.Open(input)
	require.NoError(t, err)
	defer f.Close()

	out, err := inCage(t, f, `read -r x < `+inputPath+`; echo "$x"; read -r y < `+inputPath+`; echo "$y"`, caged{})
	require.NoError(t, err, "the input can be read, twice from its beginning")
	assert.Equal(t, "recording\nrecording\n", out)

	for name, script := range map[string]string{
		"another file":       `read -r x < ` + secret + ` || [ -n "$x" ]`,
		"the neighbor":       `cd /proc/self/fd && read -r x < ../../../` + secret,
		"a system file":      `read -r x < /etc/passwd`,
		"other processes":    `read -r x < /proc/` + fmt.Sprint(os.Getpid()) + `/environ`,
		"a new file":         `echo x > ` + filepath.Join(dir, "new"),
		"the input, writing": `echo x > ` + inputPath,
		"a device":           `echo x > /dev/null`,
		"the network":        `exec 4<>/dev/tcp/` + strings.Replace(listener.Addr().String(), ":", "/", 1),
		"datagrams":          `exec 4<>/dev/udp/127.0.0.1/9`,
		"a signal":           `kill -0 ` + fmt.Sprint(os.Getpid()),
		"another program":    `shopt -s execfail; exec /usr/bin/env`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := inCage(t, f, `if `+script+`; then echo done; else echo refused; fi`, caged{})
			require.NoError(t, err)
			assert.Equal(t, "refused\n", out)
		})
	}
	t.Run("root's powers", func(t *testing.T) {
		var bounding string
		// Without Landlock, the child can read its own status from the kernel.
		out, err := inCageWith(t, nil, `while read -r name value; do echo "$name $value"; done < /proc/self/status`, caged{}, false)
		require.NoError(t, err)
		for _, l := range strings.Split(out, "\n") {
			if strings.HasPrefix(l, "CapBnd:") || strings.HasPrefix(l, "NoNewPrivs:") || strings.HasPrefix(l, "Seccomp:") {
				bounding += l + "\n"
			}
		}
		want := "CapBnd: 0000000000000004\n" // CAP_DAC_READ_SEARCH
		if os.Geteuid() == 0 {
			assert.Contains(t, bounding, want)
		}
		assert.Contains(t, bounding, "NoNewPrivs: 1\n")
		assert.Contains(t, bounding, "Seccomp: 2\n")
	})
	t.Run("memory", func(t *testing.T) {
		out, err := inCage(t, nil, `printf -v x '%*s' 200000000 y; echo grown`, caged{cage.Spec{Memory: 100 << 20, CPU: 20}, time.Minute})
		assert.Error(t, err)
		assert.NotContains(t, out, "grown")
	})
	t.Run("processor time", func(t *testing.T) {
		_, err := inCage(t, nil, `while :; do :; done`, caged{cage.Spec{Memory: childMemory, CPU: 1}, time.Minute})
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Contains(t, exit.Error(), "CPU time limit")
	})
	t.Run("a process", func(t *testing.T) {
		out, err := inCage(t, nil, `/usr/bin/env; (echo forked)`, caged{})
		assert.Error(t, err)
		assert.NotContains(t, out, "forked")
	})
	t.Run("wall clock", func(t *testing.T) {
		_, err := inCage(t, nil, `while :; do :; done`, caged{cage.Spec{Memory: childMemory, CPU: 60}, 200 * time.Millisecond})
		require.ErrorIs(t, err, errWallClock)
	})
	assert.Empty(t, children(t))

	// The rest of this process stays unrestricted.
	_, err = os.ReadFile(secret)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(secret, nil, 0o644))
	c, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	c.Close()
}

// slowFile returns a compressed WAV of many hours that is quick to create.
func slowFile(t testing.TB) string {
	t.Helper()
	head := wavFile{tag: 0x11, bits: 4, align: 1024, rate: SampleRate, dataSize: size(400 << 20)}.bytes()
	path := filepath.Join(t.TempDir(), "slow.wav")
	require.NoError(t, os.WriteFile(path, head, 0o600))
	require.NoError(t, os.Truncate(path, 400<<20))
	return path
}

// TestCanceledDecodingLeavesNothing checks that a canceled caller gets its
// cause and that no child or file remains.
func TestCanceledDecodingLeavesNothing(t *testing.T) {
	needFFmpeg(t)
	path := slowFile(t)
	cause := errors.New("the caller went away")
	for _, wait := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(wait, func() { cancel(cause) })
		opt := Options{MaxSeconds: -1, TempDir: t.TempDir()}
		_, err := Open(ctx, File(path), opt)
		require.ErrorIs(t, err, cause)
		assert.False(t, spec.IsPermanent(err))
		assert.Empty(t, children(t))
		left, err := os.ReadDir(opt.TempDir)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := Open(ctx, File(path), Options{})
	require.ErrorIs(t, err, cause)
	_, err = Probe(ctx, File(path), Options{})
	require.ErrorIs(t, err, cause)
}

func TestDecodingTimeIsLimited(t *testing.T) {
	needFFmpeg(t)
	_, err := Open(t.Context(), File(slowFile(t)), Options{MaxSeconds: -1, MaxDecodeTime: 200 * time.Millisecond})
	require.ErrorIs(t, err, spec.ErrSlow)
	assert.False(t, spec.IsPermanent(err), "a busy machine is no fault of the file")
	assert.Empty(t, children(t))
}

func decodeForEver(path string) {
	fmt.Println("decoding")
	_, err := Open(context.Background(), File(path), Options{MaxSeconds: -1, TempDir: filepath.Dir(path)})
	fmt.Println(err)
}

// TestDyingProcess kills a process during decoding and checks that its child
// dies with it and that no temporary file remains.
func TestDyingProcess(t *testing.T) {
	needFFmpeg(t)
	if runtime.GOOS != "linux" {
		t.Skip("the child's fate is tied to its parent on Linux only")
	}
	path := slowFile(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "OTOGRAPH_TEST_DECODE="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "decoding\n", line)
	var grandchildren []int
	require.Eventually(t, func() bool {
		grandchildren = childrenOf(t, cmd.Process.Pid)
		return len(grandchildren) > 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool {
		for _, pid := range grandchildren {
			if s, ok := readStat(pid); ok && s.state != "Z" {
				return false
			}
		}
		return true
	}, 20*time.Second, 5*time.Millisecond, "ffmpeg outlives its parent")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "only the recording itself")
}

func TestDecoderMissing(t *testing.T) {
	flac := "testdata/formats/no_extension"
	_, err := Open(t.Context(), File(flac), Options{FFmpeg: "/nonexistent/ffmpeg"})
	require.ErrorIs(t, err, ErrDecoderMissing)
	assert.False(t, spec.IsPermanent(err))
	assert.ErrorContains(t, err, "apt-get install ffmpeg")
	assert.ErrorContains(t, err, "no_extension")
	assert.ErrorContains(t, err, "flac")
	pcm, err := Open(t.Context(), reader(wavFile{data: s16(tone(SampleRate, 440, 0.1))}.bytes(), "a.wav"), Options{FFmpeg: "/nonexistent/ffmpeg"})
	require.NoError(t, err, "WAV needs no ffmpeg")
	pcm.Close()
	s := sandbox(Options{FFmpeg: "/nonexistent/ffmpeg"})
	assert.False(t, s.Works)
	assert.Contains(t, strings.Join(s.Problems, "\n"), "install it")
}

// TestUnusualDecoders runs programs that are not ffmpeg or that can't run in
// the sandbox.
func TestUnusualDecoders(t *testing.T) {
	needFFmpeg(t)
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "ffmpeg")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	real, err := findFFmpeg(Options{})
	require.NoError(t, err)
	flac := File("testdata/formats/no_extension")

	wrapper := script("#!/bin/sh\nexec " + real + ` "$@"` + "\n")
	pcm, err := Open(t.Context(), flac, Options{FFmpeg: wrapper})
	require.NoError(t, err, "a wrapper script cannot run under Landlock, so it runs without")
	assert.Equal(t, 48000, pcm.Len())
	pcm.Close()
	if s := sandbox(Options{FFmpeg: wrapper}); runtime.GOOS == "linux" && landlocked() {
		assert.True(t, s.Works)
		assert.Zero(t, s.Landlock)
		assert.Contains(t, strings.Join(s.Problems, "\n"), "wrapper")
	}

	for name, text := range map[string]string{
		"says nothing":      "#!/bin/sh\nexit 0\n",
		"writes rubbish":    "#!/bin/sh\necho rubbish\n",
		"floods its errors": "#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&2; i=$((i+1)); [ $i -gt 20000 ] && exit 1; done\n",
		"kills itself":      "#!/bin/sh\nulimit -c 0; kill -SEGV $$\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), flac, Options{FFmpeg: script(text)})
			t.Log(err)
			require.Error(t, err)
			assert.ErrorContains(t, err, "no_extension")
		})
	}
	_, err = Open(t.Context(), flac, Options{FFmpeg: script("#!/bin/sh\n[ $1 = -version ] && echo ffmpeg version 1 && exit\necho \"[fatal] Requested output format 'matroska' is not known.\" >&2; exit 1\n")})
	require.ErrorContains(t, err, "cannot write Matroska")
	assert.False(t, spec.IsPermanent(err), "the recording is not at fault")
	_, err = Open(t.Context(), flac, Options{FFmpeg: script("not a program")})
	require.Error(t, err)
	assert.False(t, spec.IsPermanent(err))
	assert.False(t, sandbox(Options{FFmpeg: script("#!/bin/sh\necho no\n")}).Works)
}

func landlocked() bool { return Sandbox().Landlock > 0 }

func TestSandbox(t *testing.T) {
	needFFmpeg(t)
	s := Sandbox()
	t.Logf("%+v\n%s", s, s.Strength())
	assert.True(t, s.Works)
	assert.NotEmpty(t, s.Version)
	assert.True(t, filepath.IsAbs(s.FFmpeg))
	assert.Equal(t, "none", SandboxState{}.Strength())
}

// TestParallelDecoding decodes on many goroutines in parallel.
func TestParallelDecoding(t *testing.T) {
	needFFmpeg(t)
	content, err := os.ReadFile("testdata/formats/no_extension")
	require.NoError(t, err)
	results := make(chan error, 8)
	for i := range cap(results) {
		go func() {
			src := File("testdata/formats/no_extension")
			if i%2 == 1 {
				src = Reader(bytes.NewReader(content), "upload")
			}
			pcm, err := Open(context.Background(), src, Options{})
			if err == nil {
				if pcm.Len() != 48000 || pcm.Info().MD5 != md5Hex(content) {
					err = fmt.Errorf("%+v", pcm.Info())
				}
				err = errors.Join(err, pcm.Close(), pcm.Close())
			}
			results <- err
		}()
	}
	for range cap(results) {
		require.NoError(t, <-results)
	}
}
