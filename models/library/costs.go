package library

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/otograph/otograph/internal/processor"
	"github.com/otograph/otograph/internal/userdata"
)

// Cost is what a model cost on this machine when it was measured.
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

// RememberCosts keeps measured costs, by the paths of the models' main files, in the
// user's data folder. Those of other files and processors stay.
func RememberCosts(costs map[string]Cost) error {
	if len(costs) == 0 {
		return nil
	}
	name, err := userdata.Dir("costs.json")
	if err != nil {
		return err
	}
	all := readCosts(name)
	for path, c := range costs {
		all[costKey(path)] = c
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("costs of models: %w", err)
	}
	partial, err := os.CreateTemp(filepath.Dir(name), "costs-*.part")
	if err != nil {
		return fmt.Errorf("costs of models: %w", err)
	}
	defer os.Remove(partial.Name())
	_, err = partial.Write(append(text, '\n'))
	if err = errors.Join(err, partial.Close()); err != nil {
		return fmt.Errorf("costs of models: %w", err)
	}
	return os.Rename(partial.Name(), name)
}

// costKey names a file on a processor: a data folder may be shared by machines.
func costKey(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path + "; " + processor.Name()
}

// readCosts reads the file; one that is not there, or is damaged, is empty.
func readCosts(name string) map[string]Cost {
	all := map[string]Cost{}
	f, err := os.Open(name)
	if err != nil {
		return all
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&all); err != nil || all == nil {
		return map[string]Cost{}
	}
	maps.DeleteFunc(all, func(_ string, c Cost) bool { return !(c.Hour > 0 && c.Sound > 0) })
	return all
}

// known are the costs measured on this processor.
type known map[string]Cost

func knownCosts() known {
	name, err := userdata.Dir("costs.json")
	if err != nil {
		return nil
	}
	return readCosts(name)
}

// of returns what the model with these files cost; nil if it was not measured.
func (k known) of(paths ...string) *Cost {
	for _, path := range paths {
		c, ok := k[costKey(path)]
		if !ok {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Size() == c.Size {
			return &c
		}
	}
	return nil
}
