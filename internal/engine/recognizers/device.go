package recognizers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Values of Options.Device besides the name of a device.
const (
	// DeviceAuto selects the first device with separate memory, else the CPU.
	DeviceAuto = "auto"
	// DeviceCPU selects the CPU.
	DeviceCPU = "cpu"
)

// kinds are the supported kinds of ggml devices. CUDA requires a libwhisper
// built by the user, and is untested.
var kinds = []string{"vulkan", "cuda"}

// ParseDevice returns the full name of a device, which need not exist: "" is
// DeviceAuto, and "vulkan" the first of its kind, "vulkan:0".
func ParseDevice(name string) (string, error) {
	switch name {
	case "", DeviceAuto:
		return DeviceAuto, nil
	case DeviceCPU:
		return DeviceCPU, nil
	}
	kind, number, numbered := strings.Cut(name, ":")
	n, err := strconv.ParseUint(number, 10, 8)
	if !slices.Contains(kinds, kind) || numbered && err != nil {
		return "", fmt.Errorf("expected auto, cpu, or %s with or without a number as in %s:0, found %q",
			strings.Join(kinds, " or "), kinds[0], name)
	}
	return fmt.Sprintf("%s:%d", kind, n), nil
}
