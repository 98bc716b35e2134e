package main

import (
	"log/slog"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models/library"
)

// choiceFlags configures how long and how many of the folder's recognizers,
// which a request may name, stay loaded.
type choiceFlags struct {
	KeepModels  time.Duration `default:"10m" placeholder:"DURATION" group:"Models" help:"Unload a recognizer that no task has used for this time; 0: never."`
	ModelMemory int64         `placeholder:"MB" group:"Models" help:"Bound of a worker's loaded recognizers, by the size of their files; default: half of the machine's or container's memory, divided by the workers."`
}

// modelShare is the share of the memory for the recognizers of all workers.
const modelShare = 0.5

// bound returns the bytes for each worker's recognizers; 0 means no bound.
func (f *choiceFlags) bound(workers int) int64 {
	if f.ModelMemory > 0 {
		return f.ModelMemory << 20
	}
	return int64(modelShare*float64(host.MemoryLimit())) / int64(max(1, workers))
}

// choice returns the recognizers of the model folder, which tasks may name.
func (f *choiceFlags) choice(from modelFlags, log *slog.Logger) (otograph.Choice, error) {
	dir := library.Load{Dir: from.Models}.OrDefaultDir().Dir
	found, err := library.Recognizers(dir)
	if err != nil {
		return otograph.Choice{}, err
	}
	bound := f.bound(1)
	log.Debug("recognizers that tasks may name", "folder", dir, "number", len(found), "memory", bound, "keep", f.KeepModels)
	return otograph.Choice{Models: found, Keep: f.KeepModels, Memory: bound}, nil
}
