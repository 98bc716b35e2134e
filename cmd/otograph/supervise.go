package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/otograph/otograph/asr/whispercpp" // also registers it
	"github.com/otograph/otograph/internal/engine/recognizers"
)

// envDelegated marks a process that does another one's work.
const envDelegated = "OTOGRAPH_DELEGATED"

// childExit is the exit code of a process that worked for us and printed why.
type childExit int

func (e childExit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// supervised runs a command in a second process if a GPU driver may be loaded,
// because a fault in a driver's thread ends the process and cannot be caught.
// After such a crash it runs the command again without the driver and drops the
// first output. once states why the command cannot be repeated, for the error.
// done is false if the caller has to do the work.
func supervised(ctx context.Context, d device, once string) (done bool, err error) {
	if d == recognizers.DeviceCPU || os.Getenv(envDelegated) != "" || !whispercpp.HasPlugin() {
		return false, nil
	}
	program, err := os.Executable()
	if err != nil {
		return false, nil //nolint:nilerr // then the driver is trusted
	}
	signal, err := delegate(ctx, program, true)
	if signal == 0 || ctx.Err() != nil {
		return true, err
	}
	if once != "" {
		return true, fmt.Errorf("the driver of the device crashed (%v); %s: run the command again with --device cpu", signal, once)
	}
	warn("otograph: the driver of the device crashed (%v); starting again without it\n", signal)
	_, err = delegate(ctx, program, false, whispercpp.EnvDriverCrashed+"=the driver crashed: "+signal.String())
	return true, err
}

// delegate runs this command line in another process. It returns the signal of
// a crash, or the error for the exit code. With hold, standard output is held
// back until the process has ended without a crash.
func delegate(ctx context.Context, program string, hold bool, env ...string) (crash syscall.Signal, err error) {
	child := exec.CommandContext(ctx, program, os.Args[1:]...) //nolint:gosec // our own program and arguments
	child.Env = slices.Concat(os.Environ(), []string{envDelegated + "=1", "GOTRACEBACK=crash"}, env)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 10 * time.Second
	if hold {
		held, createErr := os.CreateTemp("", "otograph-output-*")
		if createErr != nil {
			return 0, createErr
		}
		defer held.Close()
		defer os.Remove(held.Name())
		child.Stdout = held
		defer func() {
			if text, readErr := os.ReadFile(held.Name()); crash == 0 {
				err = errors.Join(err, readErr, printDocument(text, "", false))
			}
		}()
	}
	err = child.Run()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return 0, err
	}
	if s := crashSignal(exit); s != 0 {
		return s, nil
	}
	if exit.ExitCode() < 0 {
		return 0, fmt.Errorf("the process that did the work was ended: %w", exit)
	}
	return 0, childExit(exit.ExitCode())
}

// deviceFlag selects the device for the standard tier's model.
type deviceFlag struct {
	Device device `default:"auto" placeholder:"DEVICE" env:"OTOGRAPH_DEVICE" help:"Device that computes the standard tier's model: auto (a GPU if there is one, else the CPU), cpu, vulkan or vulkan:N; doctor lists them."`
}

// device is the name of a device, which may be missing.
type device string

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *device) UnmarshalText(text []byte) error {
	*d = device(text)
	_, err := recognizers.ParseDevice(string(text))
	return err
}

// devices reports the devices for the standard tier's model besides the CPU.
func (doctorCmd) devices() finding {
	f := finding{Part: "GPU", OK: true}
	found, err := whispercpp.Devices()
	if err != nil {
		f.Found = "not checked without libwhisper"
		return f
	}
	for i, d := range found {
		if i > 0 {
			f.Found += "; "
		}
		f.Found += fmt.Sprintf("%s %s, %.1f of %.1f GiB free", d.Name, d.Description, gib(d.Free), gib(d.Memory))
		if d.Integrated {
			f.Found += ", integrated: used only if selected with --device"
		}
	}
	if len(found) == 0 {
		f.Found = "none; the CPU computes everything"
		f.ToDo = "for a GPU: " + whispercpp.NoDevices()
	}
	return f
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
