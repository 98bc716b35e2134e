package library

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/system/host"
)

// Cost is the measured cost of a model on this machine.
type Cost struct {
	// Hour is the processor time per hour of audio, in seconds.
	Hour float64 `json:"processor_seconds_per_hour"`
	// Sound is the duration of the measured audio, in seconds.
	Sound float64 `json:"sound_seconds"`
	// Date is the day of the measurement, such as 2026-11-24.
	Date string `json:"date"`
	// Size is the size of the model's main file in bytes; it detects another
	// file under the same name.
	Size int64 `json:"size"`
}

// costTable is the file of measured costs in the user's data folder.
const costTable = "costs.json"

// RememberCosts saves measured costs, by the paths of the models' main files,
// in the user's data folder. It keeps the costs of other files and processors.
func RememberCosts(costs map[string]Cost) error {
	if len(costs) == 0 {
		return nil
	}
	all := knownCosts()
	for path, c := range costs {
		all[costKey(path)] = c
	}
	file, err := host.DataDir(costTable)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = writeJSON(file, all)
	}
	if err != nil {
		return fmt.Errorf("costs of models: %s: %w", file, err)
	}
	return nil
}

// costKey identifies a file on a processor, because several machines may share
// a data folder.
func costKey(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path + "; " + host.ProcessorName()
}

// known holds the costs measured on this processor.
type known map[string]Cost

// knownCosts returns no costs if their file is missing or damaged.
func knownCosts() known {
	var all known
	file, err := host.DataDir(costTable)
	if err != nil {
		return known{}
	}
	if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &all) != nil || all == nil {
		return known{}
	}
	return all
}

// of returns the measured cost of the model with these files; nil if there is
// none.
func (k known) of(paths ...string) *Cost {
	for _, path := range paths {
		c, ok := k[costKey(path)]
		if !ok || !(c.Hour > 0 && c.Sound > 0) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Size() == c.Size {
			return &c
		}
	}
	return nil
}
