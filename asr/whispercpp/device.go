package whispercpp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/engine/recognizers"
	"github.com/otograph/otograph/internal/system/native"
)

// EnvDriverCrashed is the environment variable that keeps device plug-ins from
// being loaded; its value is the reason. A program sets it when a driver has
// crashed in another process.
const EnvDriverCrashed = "OTOGRAPH_DRIVER_CRASHED"

var (
	// errDevice marks a failure of the device or its driver.
	errDevice = errors.New("the device failed")
	// errLibrary marks a libwhisper that does not fit this program.
	// (native.ErrMissing marks a missing one.)
	errLibrary = errors.New("libwhisper does not fit")
)

// Device is a device other than the CPU that can compute a model.
type Device struct {
	Name        string // as in otograph.Config.Device, such as "vulkan:0"
	Description string // the driver's name for it
	Memory      uint64 // in bytes
	Free        uint64 // free memory, in bytes
	Integrated  bool   // it shares the processor's memory
}

// Devices lists the devices other than the CPU that can compute a model, by
// ggml's plug-ins. It returns an error if libwhisper is missing.
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
		return fmt.Errorf("whispercpp: devices: %w: %w", err, errLibrary)
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

// pluginFile returns the path of ggml's Vulkan plug-in with the libraries.
func pluginFile(dir string) string { return filepath.Join(dir, "vulkan", "libggml-vulkan.so") }

// HasPlugin reports whether a plug-in is installed, which loads a driver.
func HasPlugin() bool {
	dir, err := native.Whisper()
	return err == nil && dir != "" && isFile(pluginFile(dir)) && os.Getenv(EnvDriverCrashed) == ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// choose returns the number and name of the device for a model; a negative
// number is the CPU. note says why it is not the requested one.
func choose(device string) (number int, name, note string, err error) {
	name, err = recognizers.ParseDevice(device)
	if err != nil || name == recognizers.DeviceCPU || name == recognizers.DeviceAuto && !HasPlugin() {
		return -1, recognizers.DeviceCPU, "", err
	}
	devices, err := Devices()
	if err != nil {
		return -1, recognizers.DeviceCPU, fmt.Sprintf("%s needs libwhisper (%v); the CPU computes", name, err), nil
	}
	for i, d := range devices {
		if d.Name == name || name == recognizers.DeviceAuto && !d.Integrated {
			return i, d.Name, "", nil
		}
	}
	if name != recognizers.DeviceAuto {
		note = name + " is not there (" + others(devices) + "); the CPU computes"
	}
	return -1, recognizers.DeviceCPU, note, nil
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
