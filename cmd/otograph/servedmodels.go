package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/engine/ort"
	"github.com/otograph/otograph/models"
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

// checkModels refuses models that violate the interface, and logs the tier for
// tasks that cannot use the optimized one.
func (f *servedModelFlags) checkModels(set *models.Set, log *slog.Logger) error {
	if m, ok := set.Role(models.RoleEmbedder); ok && !f.AnyEmbedding {
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
	var without []string
	for _, language := range spec.OptimizedLanguages() {
		if !slices.Contains(available.Optimized, language) {
			without = append(without, language)
		}
	}
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
