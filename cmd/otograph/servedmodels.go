package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/spec"
)

// embeddingSize is the number of floats of speaker_embeddings[].embedding in
// the interface specification.
const embeddingSize = 192

// servedModelFlags configures which models the service accepts.
type servedModelFlags struct {
	AnyEmbedding       bool `group:"Models" help:"Accept a speaker embedder whose embeddings do not have the 192 numbers of the specification."`
	OptimizedLanguages bool `group:"Models" help:"Let the optimized tier serve every language that its models list, not only the five of the specification."`
}

// checkModels refuses models that violate the interface, which embedded ones do
// not, and logs the tier for tasks that cannot use the optimized one.
func (f *servedModelFlags) checkModels(set *models.Set, log *slog.Logger) error {
	if m, ok := set.Role(models.RoleEmbedder); ok && m.Main().Path != "" && !f.AnyEmbedding {
		size, err := sizeOfEmbeddings(m)
		if err != nil {
			return err
		}
		if size > 0 && size != embeddingSize {
			return fmt.Errorf("%s: its embeddings have %d numbers, expected %d as specified; use --any-embedding to accept it anyway", m, size, embeddingSize)
		}
	}
	available := set.Available(f.languages()...)
	if !available.Standard {
		return nil
	}
	without := slices.DeleteFunc(spec.OptimizedLanguages(), func(language string) bool { return slices.Contains(available.Optimized, language) })
	if len(without) > 0 {
		log.Warn("no optimized model for some languages of the optimized tier: tasks in them run in the standard tier, also with optimize=true, and are held and charged at its price",
			"languages", strings.Join(without, " "))
	}
	return nil
}

// languages returns the optimized tier's languages; empty means all of them.
func (f *servedModelFlags) languages() []string {
	if f.OptimizedLanguages {
		return nil
	}
	return spec.OptimizedLanguages()
}

// sizeOfEmbeddings returns the length of a network's embeddings from its file;
// 0 if the file leaves it open.
func sizeOfEmbeddings(m *models.Model) (int64, error) {
	source, err := ort.SourceOf(m, m.Main())
	if err != nil {
		return 0, err
	}
	graph, err := ort.Inspect(source)
	if err != nil {
		return 0, err
	}
	for _, output := range graph.Outputs {
		if strings.HasPrefix(output.Name, "emb") || len(graph.Outputs) == 1 {
			return max(0, output.Last()), nil
		}
	}
	return 0, nil
}

// choiceFlags configures how many recognizers that requests name stay loaded,
// and how long.
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
