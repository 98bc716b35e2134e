package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/backoff"
	"github.com/otograph/otograph/internal/system/host"
)

// SupervisorConfig configures a Supervisor. Command and N are required; zero
// values of the other fields select the service's defaults.
type SupervisorConfig struct {
	Command []string // program and arguments of one worker process: it must call New, and end when Supervised's context does
	// Fallback is the command of the process that follows a crash, for example
	// without a GPU's driver. Command runs again after a crash of the fallback
	// process, since the difference between the two was not the cause, or after
	// Return, when the fallback process is asked to end. Empty means Command.
	Fallback       []string
	Env            []string // added to this process's environment
	N              int      // worker processes
	Stdout, Stderr io.Writer
	Version        string

	Grace     time.Duration // how long children may take to end when asked to; default 30 s
	Heartbeat time.Duration // default 5 s
	MinPause  time.Duration // before a dead child is replaced; doubles while children die young; default 100 ms
	MaxPause  time.Duration // default 30 s
	Stale     time.Duration // a child without a heartbeat for this long is killed; default 30 s
	Start     time.Duration // how long a child may take to its first heartbeat; default DefaultStall
	Return    time.Duration // how long Fallback runs before Command runs again; default 1 h
}

// healthy is how long a child must live to reset the restart pause.
const healthy = time.Minute

// Supervisor keeps N worker processes running. Native code runs only in them:
// if it crashes, the supervisor sees the process die, ends the attempt of the
// one task that it held, and starts another process.
type Supervisor struct {
	service *tasks.Runs
	config  SupervisorConfig
	id      string

	mu       sync.Mutex
	children map[string]*os.Process // by worker id
	restarts int
}

// NewSupervisor returns a supervisor for a service.
func NewSupervisor(s *tasks.Runs, c SupervisorConfig) (*Supervisor, error) {
	if len(c.Command) == 0 || c.N < 1 {
		return nil, errors.New("worker: SupervisorConfig needs Command and N")
	}
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.MinPause = cmp.Or(c.MinPause, 100*time.Millisecond)
	c.MaxPause = cmp.Or(c.MaxPause, 30*time.Second)
	c.Stale = cmp.Or(c.Stale, 30*time.Second)
	c.Start = cmp.Or(c.Start, DefaultStall)
	c.Return = cmp.Or(c.Return, time.Hour)
	return &Supervisor{service: s, config: c, id: uuid.NewString(), children: map[string]*os.Process{}}, nil
}

// Restarts returns the number of children that died and were replaced.
func (v *Supervisor) Restarts() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.restarts
}

// Run keeps the workers running until ctx is done, then asks them to end
// (SIGTERM), waits for Grace and kills the rest.
func (v *Supervisor) Run(ctx context.Context) error {
	m := queue.Member{ID: v.id, Kind: queue.Supervisor, Version: v.config.Version}
	stop, joined := v.service.Queue().Join(ctx, m, v.config.Heartbeat, v.killSilent())
	if !joined {
		return nil
	}
	defer stop()
	var wait sync.WaitGroup
	for range v.config.N {
		wait.Go(func() { v.keep(ctx) })
	}
	wait.Wait()
	return nil
}

// killSilent returns a function to call after each heartbeat: it kills children
// whose heartbeats stopped or did not begin.
func (v *Supervisor) killSilent() func(context.Context) {
	type sight struct {
		beats int64
		since time.Time
	}
	seen := map[string]sight{}
	return func(ctx context.Context) {
		v.mu.Lock()
		children := maps.Clone(v.children)
		v.mu.Unlock()
		now := time.Now()
		next := map[string]sight{}
		for id, p := range children {
			beats, err := v.service.Queue().Beats(ctx, id)
			if err != nil {
				return // perhaps next time
			}
			at := sight{beats, now}
			if before, ok := seen[id]; ok && before.beats == beats {
				at.since = before.since
			}
			next[id] = at
			limit := v.config.Stale
			if beats < 0 { // the child may be loading its models
				limit = v.config.Start
			}
			if now.Sub(at.since) >= limit {
				v.service.Config.Logger.WarnContext(ctx, "worker does not respond and is killed", "worker", id, "pid", p.Pid)
				_ = p.Kill()
			}
		}
		seen = next
	}
}

func (v *Supervisor) keep(ctx context.Context) {
	s, log := v.service, v.service.Config.Logger
	pause := v.config.MinPause
	turns := commandChoice{primary: v.config.Command, fallback: v.config.Fallback, turn: v.config.Return}
	for ctx.Err() == nil {
		id := uuid.NewString()
		begun := time.Now()
		ooms := oomKills()
		command, turn, end := turns.begin(ctx, begun)
		how, message, err := v.runOne(turn, command, id, ooms)
		over := turn.Err() != nil
		end()
		if err != nil && !over {
			log.ErrorContext(ctx, "worker process not started", "command", command[0], "error", err)
		}
		if err == nil {
			// A child's claims are handed back even while this process ends.
			last, done := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			err := backoff.Retry(last, tasks.Outage, func(ctx context.Context) error {
				_, err := s.Reap(ctx, id, how, message)
				return err
			})
			done()
			if err != nil {
				log.ErrorContext(ctx, "work of a dead worker not taken back yet", "worker", id, "error", err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		crashed := err == nil && how == tasks.EndCrash
		if turns.ended(crashed, time.Now()) {
			log.WarnContext(ctx, "the next worker runs with the other command", "worker", id, "crashed", crashed, "was", strings.Join(command, " "))
		}
		if over {
			continue // nothing died
		}
		v.mu.Lock()
		v.restarts++
		v.mu.Unlock()
		log.WarnContext(ctx, "worker process is replaced", "worker", id, "reason", message, "pause", pause.String())
		if time.Since(begun) >= healthy {
			pause = v.config.MinPause
		}
		backoff.Sleep(ctx, pause)
		pause = min(2*pause, v.config.MaxPause)
	}
}

// runOne starts a child and returns how it ended.
func (v *Supervisor) runOne(ctx context.Context, command []string, id string, ooms int) (how tasks.Ending, message string, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = v.config.Grace // after this time it is killed
	cmd.Env = append(append(os.Environ(), v.config.Env...), envWorker+"="+id, envSupervisor+"="+v.id, envSupervised+"=1")
	cmd.Stdout, cmd.Stderr = v.config.Stdout, v.config.Stderr
	host.OwnGroup(cmd) // a terminal's Ctrl-C is for the supervisor, which drains in order
	// A child detects the death of this process by the end of its input.
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return 0, "", err
	}
	if err := cmd.Start(); err != nil {
		lifeline.Close()
		return 0, "", err
	}
	v.mu.Lock()
	v.children[id] = cmd.Process
	v.mu.Unlock()
	_ = cmd.Wait()
	v.mu.Lock()
	delete(v.children, id)
	v.mu.Unlock()
	lifeline.Close()
	how, message = verdict(cmd.ProcessState, ctx.Err() != nil, ooms)
	return how, message, nil
}

// ExitAway is the exit code of a worker whose database or store is unavailable
// (EX_TEMPFAIL of sysexits.h): task and command are not to blame.
const ExitAway = 75

// verdict returns the consequence of a child's death for its task. Exit codes
// and signals of native code are crashes. SIGKILL and SIGTERM come from
// outside: the task is not to blame, unless memory ran out.
func verdict(state *os.ProcessState, draining bool, ooms int) (tasks.Ending, string) {
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL && draining:
		return tasks.EndHandedBack, "the worker did not end in time and was killed"
	case status.Signaled() && status.Signal() == syscall.SIGKILL && oomKills() > ooms:
		return tasks.EndRecoverable, "the worker was killed because memory ran out"
	case status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT || status.Signal() == syscall.SIGHUP):
		return tasks.EndInterrupted, fmt.Sprintf("the worker was ended by a signal from outside (%v)", status.Signal())
	case status.Signaled():
		return tasks.EndCrash, fmt.Sprintf("the worker died of %v", status.Signal())
	case status.ExitStatus() == 0:
		return tasks.EndHandedBack, "the worker ended"
	case status.ExitStatus() == ExitAway:
		return tasks.EndInterrupted, "the worker gave up because its database or store is away"
	}
	return tasks.EndCrash, fmt.Sprintf("the worker ended with code %d", status.ExitStatus())
}

// oomKills returns the number of processes that the kernel has killed since
// boot because memory ran out; 0 if the kernel does not report it.
func oomKills() int {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}

// envSupervised marks a process whose standard input is a pipe from its
// supervisor, which closes when the supervisor ends.
const envSupervised = "OTOGRAPH_SUPERVISED"

// Supervised returns contexts for a worker process. work is done when parent is,
// and both are, in a process that a Supervisor started, when that supervisor is
// gone.
func Supervised(parent context.Context) (work, gone context.Context, stop context.CancelFunc) {
	work, cancel := context.WithCancel(parent)
	gone, end := context.WithCancel(context.WithoutCancel(parent))
	if os.Getenv(envSupervised) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end()
			cancel()
		}()
	}
	return work, gone, func() {
		cancel()
		end()
	}
}

// commandChoice chooses which of two commands runs: the fallback for a time
// after a crash of the primary one, and the primary one after a crash of the
// fallback or when that time is over.
type commandChoice struct {
	primary, fallback []string
	turn              time.Duration // of the fallback command
	until             time.Time     // end of the fallback command's time; in the past while the primary one runs
}

// begin returns the next command, and a context that ends with its time.
func (t *commandChoice) begin(ctx context.Context, now time.Time) ([]string, context.Context, context.CancelFunc) {
	if !now.Before(t.until) {
		t.until = time.Time{}
		ctx, end := context.WithCancel(ctx)
		return t.primary, ctx, end
	}
	ctx, end := context.WithDeadline(ctx, t.until)
	return t.fallback, ctx, end
}

// ended records a process's end and reports whether the other one is next.
func (t *commandChoice) ended(crashed bool, now time.Time) bool {
	switch fallback := !t.until.IsZero(); {
	case len(t.fallback) == 0:
		return false
	case fallback && (crashed || !now.Before(t.until)): // after a crash, the difference between the commands was not the cause
		t.until = time.Time{}
	case !fallback && crashed:
		t.until = now.Add(t.turn)
	default:
		return false
	}
	return true
}
