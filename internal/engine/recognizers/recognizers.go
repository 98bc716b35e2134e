// Package recognizers opens the recognizer of a model: packages of recognizers
// register a constructor for the contracts that they serve.
package recognizers

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/models"
)

// Options configures a recognizer; constructors ignore unused fields.
type Options struct {
	Device  string // as in ParseDevice
	Threads int    // CPU threads of a computation that does not wait for a gate
	Logger  *slog.Logger
}

var (
	mu           sync.RWMutex
	constructors = map[string]func(m *models.Model, o Options) (asr.Transcriber, error){}
)

// Register sets the constructor of models with the given contracts. To replace
// another package's, import that package, which then registers first.
func Register[T asr.Transcriber](open func(m *models.Model, o Options) (T, error), contracts ...string) {
	mu.Lock()
	defer mu.Unlock()
	for _, contract := range contracts {
		constructors[contract] = func(m *models.Model, o Options) (asr.Transcriber, error) {
			t, err := open(m, o)
			if err != nil {
				return nil, err // not a nil T
			}
			return t, nil
		}
	}
}

// Open opens a model with the constructor of its contract. Without a contract
// it takes any of the role: recognizers check the contract in the file.
func Open(m *models.Model, o Options) (asr.Transcriber, error) {
	contract := m.Contract
	if all := models.ContractsOf(m.Role); contract == "" && len(all) > 0 {
		contract = all[0]
	}
	mu.RLock()
	open := constructors[contract]
	mu.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("%s model %s: this program has no recognizer for the contract %q", m.Role, m.Name, contract)
	}
	return open(m, o)
}

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
