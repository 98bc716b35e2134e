package whisper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/system/native"
)

// Values of Options.Device besides the names in [Devices].
const (
	// DeviceAuto selects the first device with separate memory, else the CPU.
	DeviceAuto = "auto"
	// DeviceCPU selects the CPU.
	DeviceCPU = "cpu"
)

// backends are the supported kinds of ggml devices. CUDA requires a libwhisper
// built by the user, and is untested.
var backends = []string{"vulkan", "cuda"}

// EnvDriverCrashed is the environment variable that keeps device plug-ins from
// being loaded; its value is the reason. A supervisor sets it when it restarts
// a process whose driver crashed.
const EnvDriverCrashed = "OTOGRAPH_DRIVER_CRASHED"

// ErrDevice marks a failure of the device or its driver.
var ErrDevice = errors.New("the device failed")

// Device is a device other than the CPU that can compute a model.
type Device struct {
	Name        string // a value of Options.Device, such as "vulkan:0"
	Description string // the driver's name for it
	Memory      uint64 // in bytes
	Free        uint64 // free memory, in bytes
	Integrated  bool   // it shares the processor's memory
}

// CheckDevice returns an error unless name is a valid value of Options.Device.
// The device need not exist.
func CheckDevice(name string) error {
	_, err := parseDevice(name)
	return err
}

// parseDevice returns the full name of a device: "vulkan" is the first of its
// kind.
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

// Devices lists the devices other than the CPU that can compute a model, if
// ggml's plug-ins for them are installed. It returns an error if libwhisper is
// missing.
func Devices() ([]Device, error) {
	if err := openLibrary(); err != nil {
		return nil, err
	}
	if err := openDevices(); err != nil {
		return nil, err
	}
	return listDevices(), nil
}

// openDevices loads the device plug-ins from their folder, once; libwhisper
// must be open. They stay loaded. A plug-in that does not load has no devices.
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

// pluginFile returns the path of ggml's Vulkan plug-in in the folder of native
// libraries.
func pluginFile(dir string) string { return filepath.Join(dir, "vulkan", "libggml-vulkan.so") }

// HasPlugin reports whether a device plug-in is installed; if so, asking for a
// device loads a driver.
func HasPlugin() bool {
	dir, err := native.Whisper()
	return err == nil && dir != "" && isFile(pluginFile(dir)) && os.Getenv(EnvDriverCrashed) == ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// place is where a model is loaded: libwhisper's device number, or onCPU.
type place struct {
	number int
	name   string
}

var onCPU = place{-1, DeviceCPU}

// choose returns the place for a model. The string is the reason if it is not
// the requested place, else "".
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

// NoDevices returns the reason for having no devices, or how to get one.
func NoDevices() string {
	library.Lock()
	defer library.Unlock()
	if library.plugin != nil {
		return library.plugin.Error()
	}
	return "`otograph native --with vulkan` fetches ggml's plug-in for Vulkan"
}

// others lists the existing devices for an error message.
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

// load loads the model on the requested device, or on the CPU. note is the
// reason for the CPU, "" if it was requested.
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

// Device returns the name of the device that computes the model, "cpu" or one
// of Devices. note is the reason if it is not the requested device, else "". It
// changes when a device fails.
func (e *Engine) Device() (name, note string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.place.name, e.note
}

// leaveDevice moves the model from a failed device to the CPU. The weights and
// states on the device are never freed: the failed call may still hold the
// driver's locks.
func (e *Engine) leaveDevice(from backend, why error) (backend, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.backend != from {
		return e.backend, nil // another goroutine has already moved it
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
