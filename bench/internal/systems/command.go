package systems

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/internal/datasets"
	"github.com/otograph/otograph/internal/system/host"
)

// command is a program that writes a recording's transcript.
type command struct {
	words []string
	limit time.Duration // of one run
}

// Command returns an Engine that runs a command line. {file} in it is replaced
// with the path of the recording, and {out} with an empty folder, from which
// the transcript is read if the program prints none. Spaces separate words,
// unless they are quoted as in a shell. Each run may take at most limit.
func Command(line string, limit time.Duration) (Engine, error) {
	words, err := split(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || !strings.Contains(line, "{file}") {
		return nil, fmt.Errorf("expected a command with {file}, got %q", line)
	}
	return &command{words, limit}, nil
}

// Identity returns the words of the command.
func (c *command) Identity() string { return fmt.Sprintf("%q", c.words) }

var (
	// shellWord matches a word with parts in quotation marks, or a quotation
	// mark that is not closed.
	shellWord = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+|['"]`)
	quoted    = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

func split(line string) (words []string, err error) {
	for _, word := range shellWord.FindAllString(line, -1) {
		if word == "'" || word == `"` {
			return nil, fmt.Errorf("a quotation mark %s is not closed in %q", word, line)
		}
		words = append(words, quoted.ReplaceAllString(word, "$1$2"))
	}
	return words, nil
}

// errTooLong stops a program that writes without end.
var errTooLong = fmt.Errorf("it wrote more than %d MiB", maxOutput>>20)

// limitedBuffer buffers a program's output and stops the program at a limit. It
// does not embed a buffer, whose ReadFrom would bypass Write.
type limitedBuffer struct {
	data []byte
	stop context.CancelCauseFunc
}

func (c *limitedBuffer) Write(p []byte) (int, error) {
	if len(c.data)+len(p) > maxOutput {
		c.stop(errTooLong)
		return 0, errTooLong
	}
	c.data = append(c.data, p...)
	return len(p), nil
}

// tail keeps the end of a program's output.
type tail struct{ end []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 300
	t.end = append(t.end, p[max(0, len(p)-most):]...)
	t.end = slices.Clone(t.end[max(0, len(t.end)-most):])
	return len(p), nil
}

// Start runs the program on a second of silence and returns the cost of this
// run: of starting the program and loading its model; nil if it fails.
func (c *command) Start(ctx context.Context) *Cost {
	dir, err := os.MkdirTemp("", "otograph-bench-*")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "silence.wav")
	if WriteWAV(path, make([]float32, audio.SampleRate)) != nil {
		return nil
	}
	_, cost, err := c.Transcribe(ctx, datasets.Item{Name: "silence.wav", Path: path})
	if err != nil && !errors.Is(err, errOutput) || cost.Wall == 0 {
		return nil
	}
	return &cost
}

// Transcribe runs the program, whose cost includes the processes it started.
func (c *command) Transcribe(ctx context.Context, item datasets.Item) (*otograph.Result, Cost, error) {
	out, err := os.MkdirTemp("", "otograph-bench-*")
	if err != nil {
		return nil, Cost{}, err
	}
	defer os.RemoveAll(out)
	path, err := filepath.Abs(item.Path)
	if err != nil {
		return nil, Cost{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("it did not end within %s", c.limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0]) //nolint:gosec // the user's command
	cmd.Args = nil
	for _, w := range c.words {
		cmd.Args = append(cmd.Args, strings.NewReplacer("{file}", path, "{out}", out).Replace(w))
	}
	cmd.WaitDelay = 5 * time.Second
	stdout, stderr := &limitedBuffer{stop: stop}, &tail{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	host.OwnGroup(cmd)
	cmd.Cancel = func() error { return host.SignalGroup(cmd.Process.Pid, syscall.SIGKILL) }
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, Cost{}, err
	}
	peak := watchMemory(cmd.Process.Pid)
	err = cmd.Wait()
	cost := Cost{Wall: time.Since(start).Seconds(), PeakRSS: peak()}
	cost.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	switch cause := context.Cause(ctx); {
	case cause != nil && err != nil:
		return nil, cost, cause
	case err != nil:
		return nil, cost, fmt.Errorf("%s: %w: %q", c.words[0], err, stderr.end)
	}
	data := stdout.data
	if written, err := firstFile(out); err != nil || written != nil && len(bytes.TrimSpace(data)) == 0 {
		if err != nil {
			return nil, cost, err
		}
		data = written
	}
	res, err := parse(data, item.Name)
	return res, cost, err
}

// extensions lists the extensions of transcripts, most detailed first.
var extensions = []string{".json", ".jsonl", ".vtt", ".srt", ".ctm", ".stm", ".txt", ".rttm"}

// firstFile returns a folder's most detailed transcript, nil for none.
func firstFile(dir string) ([]byte, error) {
	for _, extension := range extensions {
		paths, err := filepath.Glob(filepath.Join(dir, "*"+extension))
		if err != nil {
			return nil, err
		}
		if len(paths) > 0 {
			return limited(paths[0])
		}
	}
	return nil, nil
}

// limited reads a file up to a size limit.
func limited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New(path + ": expected a file")
	case info.Size() > maxOutput:
		return nil, fmt.Errorf("%s: longer than %d MiB", path, maxOutput>>20)
	}
	return os.ReadFile(path)
}

// memoryPause is the interval at which a program's memory is read. The system
// keeps the peak of each process, so only a rise in its last moments is missed.
const memoryPause = 20 * time.Millisecond

// watchMemory watches the memory of a process and its children. The returned
// function stops watching and returns the sum of their peaks in bytes, 0 if the
// system does not report it. The peak that wait reports is unsuitable: after an
// exec it includes the memory of the process that started the program.
func watchMemory(pid int) func() int64 {
	stop, done := make(chan struct{}), make(chan struct{})
	peaks := map[int]int64{}
	go func() {
		defer close(done)
		for tick := time.NewTicker(memoryPause); ; {
			addPeaks(peaks, pid)
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() (sum int64) {
		close(stop)
		<-done
		for _, p := range peaks {
			sum += p
		}
		return sum
	}
}

// addPeaks stores the peaks of a process and of its children.
func addPeaks(peaks map[int]int64, pid int) {
	if peak := host.PeakMemory(strconv.Itoa(pid)); peak > 0 {
		peaks[pid] = max(peaks[pid], peak)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return
	}
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			addPeaks(peaks, n)
		}
	}
}
