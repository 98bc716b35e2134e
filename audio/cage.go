package audio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/otograph/otograph/internal/system/cage"
)

// childMemory is far more than audio decoders need (libraries alone map some
// hundred megabytes), but too little to harm the machine.
const childMemory = 4 << 30

// caged is one run of a decoder.
type caged struct {
	cage.Spec               // run sets Env, Libraries and Script
	wall      time.Duration // negative: without limit
}

var errWallClock = errors.New("the wall clock ran out")

// child is a running decoder.
type child struct {
	*cage.Process
	state  cage.State
	exited chan error
}

// run starts the child and passes its standard output to out and the lines of
// its standard error to line, until both end. When run returns, the child and
// all processes that it started are gone. The error is the child's exit error,
// the cause of ctx if ctx is done, or the error of out.
func (c caged) run(ctx context.Context, line func(string), out func(io.Reader) error) (state cage.State, err error) {
	if c.wall >= 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.wall, errWallClock)
		defer stop()
	}
	if err := context.Cause(ctx); err != nil {
		return state, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outR, outW, err := os.Pipe()
	if err != nil {
		return state, err
	}
	defer outR.Close()
	widenPipe(outR)
	errR, errW, err := os.Pipe()
	if err != nil {
		outW.Close()
		return state, err
	}
	defer errR.Close()
	ch, err := c.start(outW, errW)
	outW.Close()
	errW.Close()
	if err != nil {
		return state, err
	}
	// At the deadline, kill the whole group and close the pipes, even if
	// another process still holds their other ends.
	stopped := context.AfterFunc(ctx, func() {
		ch.Kill()
		_ = outR.SetReadDeadline(time.Now())
		_ = errR.SetReadDeadline(time.Now())
	})
	defer stopped()
	var wg sync.WaitGroup
	wg.Go(func() { readLines(errR, line) })
	outErr := out(outR)
	if outErr != nil {
		cancel(outErr)
	}
	// A child that was stopped or exited cleanly has no more output.
	_, _ = io.Copy(io.Discard, outR)
	err = <-ch.exited
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return ch.state, cause
	}
	return ch.state, err
}

// start starts the child on a thread that waits for it, because the kernel
// kills the child when that thread ends, at the latest with this process.
func (c caged) start(stdout, stderr *os.File) (*child, error) {
	c.Env, c.Libraries, c.Script = childEnvironment(), filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), isScript(c.Bin)
	p, err := cage.Command(c.Spec)
	if err != nil {
		return nil, err
	}
	p.Stdout, p.Stderr = stdout, stderr
	ch := &child{Process: p, exited: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		ch.state, err = p.Start()
		started <- err
		if err == nil {
			// Before the kernel can reuse the child's process ID.
			if awaitExit(p.Process.Pid) {
				p.Kill()
			}
			ch.exited <- p.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return ch, nil
}

// readLines passes each line to line; overlong lines arrive in pieces.
func readLines(r io.Reader, line func(string)) {
	lines := bufio.NewReaderSize(r, 4096)
	for {
		text, err := lines.ReadSlice('\n')
		if len(text) > 0 {
			line(string(text))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// isScript reports whether a program is run by an interpreter.
func isScript(bin string) bool {
	f, err := os.Open(bin)
	if err != nil {
		return false
	}
	defer f.Close()
	var mark [2]byte
	_, err = io.ReadFull(f, mark[:])
	return err == nil && string(mark[:]) == "#!"
}

// childEnvironment returns only the variables that locate shared libraries.
// Some builds load OpenBLAS, which would start a thread for each core.
func childEnvironment() []string {
	env := []string{"LC_ALL=C", "AV_LOG_FORCE_NOCOLOR=1", "OPENBLAS_NUM_THREADS=1", "HOME=/nonexistent", "PATH=/nonexistent"}
	for _, name := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
