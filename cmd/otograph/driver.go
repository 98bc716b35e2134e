package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/otograph/otograph/asr/whispercpp" // also registers it
	"github.com/otograph/otograph/internal/engine/recognizers"
)

// envLoadDrivers marks a process that only loads the drivers of devices.
const envLoadDrivers = "OTOGRAPH_LOAD_DRIVERS"

// driverFault loads the drivers of devices in another process, because a fault
// in a driver's thread ends the process and cannot be caught. It returns an
// error for such a crash; then this process loads no drivers.
func driverFault(ctx context.Context, d device) error {
	if d == recognizers.DeviceCPU || !whispercpp.HasPlugin() {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil //nolint:nilerr // then the driver is trusted
	}
	child := exec.CommandContext(ctx, program)                                 //nolint:gosec // our own program
	child.Env = append(os.Environ(), envLoadDrivers+"=1", "GOTRACEBACK=crash") // so that a fault ends the process by its signal
	exit := (*exec.ExitError)(nil)
	if !errors.As(child.Run(), &exit) || crashSignal(exit) == 0 {
		return nil
	}
	crash := crashSignal(exit).String()
	return errors.Join(fmt.Errorf("the driver of the device crashed (%s)", crash), os.Setenv(whispercpp.EnvDriverCrashed, "the driver crashed: "+crash))
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
