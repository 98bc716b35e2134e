package library

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/processor"
	"github.com/otograph/otograph/internal/userdata"
)

// Cost is the measured cost of a model on this machine.
type Cost struct {
	// Hour is the processor time for an hour of sound, in seconds.
	Hour float64 `json:"processor_seconds_per_hour"`
	// Sound is how much sound was measured, in seconds.
	Sound float64 `json:"sound_seconds"`
	// Date is the day of the measurement, as 2026-11-24.
	Date string `json:"date"`
	// Size is that of the model's main file, in bytes: another file under the same
	// name has not been measured.
	Size int64 `json:"size"`
}

// costTable is the file of measured costs in the user's data folder.
const costTable = "costs.json"

// RememberCosts keeps measured costs, by the paths of the models' main files, in the
// user's data folder. Those of other files and processors stay.
func RememberCosts(costs map[string]Cost) error {
	if len(costs) == 0 {
		return nil
	}
	all := userdata.ReadTable[Cost](costTable)
	for path, c := range costs {
		all[costKey(path)] = c
	}
	if err := userdata.WriteTable(costTable, all); err != nil {
		return fmt.Errorf("costs of models: %w", err)
	}
	return nil
}

// costKey names a file on a processor: a data folder may be shared by machines.
func costKey(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path + "; " + processor.Name()
}

// known are the costs measured on this processor.
type known map[string]Cost

func knownCosts() known { return userdata.ReadTable[Cost](costTable) }

// of returns what the model with these files cost; nil if it was not measured.
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
