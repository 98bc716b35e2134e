package audio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// limits bound one child.
type limits struct {
	wall   time.Duration // negative: without limit
	memory uint64        // bytes of address space
	cpu    uint64        // seconds of processor time
}

// childMemory is far above what audio decoders need (libraries alone map some hundred megabytes) and far below what would hurt.
const childMemory = 4 << 30

// caged is one run of a decoder.
type caged struct {
	bin   string
	args  []string
	input *os.File // descriptor 3 of the child; nil for none
	limits
	landlock bool
}

var (
	errWallClock = errors.New("the wall clock ran out")
	errCage      = errors.New("cage")
)

// run starts the child and feeds its standard output to out and the lines of its standard error to line, both until they end.
// It returns when the child is gone, whatever happened. The error is the child's own exit, the cause of ctx when that is done, or out's.
func (c caged) run(ctx context.Context, line func(string), out func(io.Reader) error) (err error) {
	if c.wall >= 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.wall, errWallClock)
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	null, err := os.Open(os.DevNull) // opened here: the caged thread may not
	if err != nil {
		return err
	}
	defer null.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer outR.Close()
	widenPipe(outR)
	errR, errW, err := os.Pipe()
	if err != nil {
		outW.Close()
		return err
	}
	defer errR.Close()

	started, exited := make(chan error, 1), make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		onCagedThread(func() {
			_, err := cageThread(c.bin, c.input, c.landlock)
			if err != nil {
				started <- errors.Join(errCage, err)
				return
			}
			cmd := exec.CommandContext(ctx, c.bin, c.args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = null, outW, errW
			cmd.Env = childEnvironment()
			cmd.SysProcAttr = childAttributes()
			cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
			if c.input != nil {
				cmd.ExtraFiles = []*os.File{c.input}
			}
			if err := cmd.Start(); err != nil {
				started <- err
				return
			}
			if err := limitProcess(cmd.Process.Pid, c.limits); err != nil {
				_ = killGroup(cmd.Process.Pid)
				started <- errors.Join(err, cmd.Wait())
				return
			}
			started <- nil
			exited <- cmd.Wait()
		})
	})
	err = <-started
	outW.Close()
	errW.Close()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	wg.Go(func() {
		lines := bufio.NewReaderSize(errR, 4096)
		for {
			text, err := lines.ReadSlice('\n')
			if len(text) > 0 {
				line(string(text))
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // overlong lines come in pieces
				return
			}
		}
	})
	outErr := out(outR)
	if outErr != nil {
		cancel(outErr)
	}
	_, _ = io.Copy(io.Discard, outR) // a child that was stopped has nothing more to say; one that ended well neither
	err = <-exited
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// killGroup ends the child and whatever it may have started.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
		if err == syscall.ESRCH {
			return os.ErrProcessDone
		}
		return err
	}
	return nil
}

// childEnvironment hands over nothing but where the libraries are.
func childEnvironment() []string {
	env := []string{"LC_ALL=C", "AV_LOG_FORCE_NOCOLOR=1", "HOME=/nonexistent", "PATH=/nonexistent"}
	for _, name := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
