package whisper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/native"
)

// Names of devices that Options.Device takes beside those of [Devices].
const (
	// DeviceAuto is the first device with separate memory, else the CPU.
	DeviceAuto = "auto"
	// DeviceCPU is the processor.
	DeviceCPU = "cpu"
)

// backends are ggml's kinds of devices that can be asked for. CUDA requires a
// libwhisper built by the user, and is untested.
var backends = []string{"vulkan", "cuda"}

// EnvDriverCrashed is the environment variable that keeps plug-ins for devices from
// being loaded; its value is the reason. A process that restarts one whose driver
// crashed sets it.
const EnvDriverCrashed = "OTOGRAPH_DRIVER_CRASHED"

// ErrDevice marks a device, or its driver, that failed.
var ErrDevice = errors.New("the device failed")

// Device is something beside the processor that can compute a model.
type Device struct {
	Name        string // as Options.Device takes it, such as "vulkan:0"
	Description string // the driver's name of it
	Memory      uint64 // in bytes
	Free        uint64 // of it, in bytes
	Integrated  bool   // it shares the processor's memory
}

// CheckDevice returns an error unless name is one that Options.Device takes, whether
// there is such a device or not.
func CheckDevice(name string) error {
	_, err := parseDevice(name)
	return err
}

// parseDevice returns the full name of a device: "vulkan" is the first of its kind.
func parseDevice(name string) (string, error) {
	switch name {
	case "", DeviceAuto:
		return DeviceAuto, nil
	case DeviceCPU:
		return DeviceCPU, nil
	}
	kind, number, numbered := strings.Cut(name, ":")
	n, err := strconv.ParseUint(number, 10, 8)
	if !slices.Contains(backends, kind) || numbered && err != nil {
		return "", fmt.Errorf("expected auto, cpu, or %s with or without a number as in %s:0, found %q",
			strings.Join(backends, " or "), backends[0], name)
	}
	return fmt.Sprintf("%s:%d", kind, n), nil
}

// Devices lists what can compute a model beside the processor, if ggml's
// plug-ins for it are installed. It returns an error if libwhisper is missing.
func Devices() ([]Device, error) {
	if err := openLibrary(); err != nil {
		return nil, err
	}
	if err := openDevices(); err != nil {
		return nil, err
	}
	return listDevices(), nil
}

// openDevices loads the plug-ins, which are in a separate folder, once;
// libwhisper is open. They stay loaded. A plug-in that does not load has no
// devices.
func openDevices() error {
	library.Lock()
	defer library.Unlock()
	if library.devices {
		return nil
	}
	dir, err := native.Whisper()
	if err != nil {
		return err
	}
	if err := prepareDevices(); err != nil {
		return fmt.Errorf("whisper: devices: %w: %w", err, ErrLibrary)
	}
	crashed := os.Getenv(EnvDriverCrashed)
	if file := pluginFile(dir); crashed != "" {
		library.plugin = errors.New(crashed)
	} else if dir != "" && isFile(file) {
		library.plugin = errors.New("the plug-in for Vulkan finds no GPU: is its driver installed?")
		if err := loadPlugin(file); err != nil {
			library.plugin = fmt.Errorf("the plug-in for Vulkan finds no driver: %w", err)
		}
	}
	library.devices = true
	return nil
}

// pluginFile is ggml's plug-in for Vulkan in the folder of the native libraries.
func pluginFile(dir string) string { return filepath.Join(dir, "vulkan", "libggml-vulkan.so") }

// HasPlugin reports whether a plug-in for devices is installed, so that a driver will
// be loaded where a device is asked for.
func HasPlugin() bool {
	dir, err := native.Whisper()
	return err == nil && dir != "" && isFile(pluginFile(dir)) && os.Getenv(EnvDriverCrashed) == ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// place is where a model is put: the device's number as libwhisper counts, or onCPU.
type place struct {
	number int
	name   string
}

var onCPU = place{-1, DeviceCPU}

// choose returns the place for a model, and why it is not the one that was asked for, ""
// when it is.
func choose(device string) (place, string, error) {
	name, err := parseDevice(device)
	if err != nil || name == DeviceCPU || name == DeviceAuto && !HasPlugin() {
		return onCPU, "", err
	}
	devices, err := Devices()
	if err != nil {
		return onCPU, fmt.Sprintf("%s needs libwhisper (%v); the CPU computes", name, err), nil
	}
	for i, d := range devices {
		if d.Name == name || name == DeviceAuto && !d.Integrated {
			return place{i, d.Name}, "", nil
		}
	}
	if name == DeviceAuto {
		return onCPU, "", nil
	}
	return onCPU, name + " is not there (" + others(devices) + "); the CPU computes", nil
}

// NoDevices returns why there are none, or what to do about it.
func NoDevices() string {
	library.Lock()
	defer library.Unlock()
	if library.plugin != nil {
		return library.plugin.Error()
	}
	return "`otograph native --with vulkan` fetches ggml's plug-in for Vulkan"
}

// others describes which devices exist.
func others(devices []Device) string {
	if len(devices) == 0 {
		return "no device is known: " + NoDevices()
	}
	var names []string
	for _, d := range devices {
		names = append(names, d.Name+" "+d.Description)
	}
	return "there is " + strings.Join(names, ", ")
}

// load puts the model on the device that the options ask for, or on the CPU: note then
// says why, unless the CPU was asked for.
func (m modelFile) load(opt Options) (b backend, at place, note string, err error) {
	at, note, err = choose(opt.Device)
	if err != nil {
		return nil, at, "", err
	}
	if at != onCPU {
		setNativeLogger(opt.Logger)
		w, err := loadWeights(m, at)
		if err == nil {
			return newOnDevice(w), at, "", nil
		}
		note, at = fmt.Sprintf("%s does not take the model (%v); the CPU computes", at.name, err), onCPU
	}
	c, err := openCPU(m, opt.Threads)
	if err != nil {
		return nil, at, note, err
	}
	return c, at, note, nil
}

// Device returns the name of what computes the model, "cpu" or one of Devices; note
// says why that is not what was asked for, "" when it is. It changes when a device fails.
func (e *Engine) Device() (name, note string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.place.name, e.note
}

// leaveDevice moves the model from a device that failed to the CPU. The weights there
// and their states are never freed: the failed call may still hold the driver's locks.
func (e *Engine) leaveDevice(from backend, why error) (backend, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.backend != from {
		return e.backend, nil // another has done it
	}
	c, err := openCPU(e.model, e.opt.Threads)
	if err != nil {
		return nil, fmt.Errorf("%w; and on the CPU: %w", why, err)
	}
	e.note = fmt.Sprintf("%s failed (%v); the CPU computes", e.place.name, why)
	e.opt.Logger.Warn("whisper: device failed, continuing on the CPU", "device", e.place.name, "error", why)
	e.backend, e.place, e.model.Data = c, onCPU, nil
	return c, nil
}
