package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// A model's cost is the cost of the stage that it alone serves.
func TestModelCosts(t *testing.T) {
	dir := t.TempDir()
	model := func(role models.Role) models.Model {
		path := filepath.Join(dir, string(role))
		require.NoError(t, os.WriteFile(path, []byte("weights"), 0o600))
		return models.Model{Role: role, Name: string(role), Files: []models.File{{Part: models.PartModel, Path: path}}}
	}
	vad, optimized, embedder := model(models.RoleVAD), model(models.RoleOptimized), model(models.RoleEmbedder)
	demo := models.Model{Role: models.RoleTagger, Name: "demo", Files: []models.File{{Part: models.PartModel}}}
	stages := map[otograph.Stage]float64{otograph.StageVAD: 1, otograph.StageTranscribe: 2, otograph.StageEmbed: 3, otograph.StageEvents: 4}
	item := func(seconds float64) itemReport {
		return itemReport{Tier: otograph.TierOptimized, Cost: Cost{Audio: seconds}, StageCPU: stages}
	}
	costs := func(set *models.Set, items ...itemReport) map[string]library.Cost {
		r := &Report{Machine: Machine{Time: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}, Systems: []systemReport{{Items: items}}}
		named := map[string]library.Cost{}
		for path, c := range r.ModelCosts([]System{{Set: set}}) {
			named[filepath.Base(path)] = c
		}
		return named
	}
	set := &models.Set{Models: []models.Model{vad, optimized, embedder, demo}}
	of := func(hour float64) library.Cost {
		return library.Cost{Hour: hour, Sound: 72, Date: "2026-11-24", Size: 7}
	}
	assert.Equal(t, map[string]library.Cost{"vad": of(100), "optimized": of(200), "embedder": of(300)}, costs(set, item(36), item(36)))

	assert.Empty(t, costs(set, item(36)), "too short")
	failed := item(36)
	failed.Error = "broken"
	assert.Empty(t, costs(set, item(36), failed))
	cascaded := item(36)
	cascaded.Cost.Stats.Cascade.Doubtful = 1
	assert.NotContains(t, costs(set, item(36), cascaded), "optimized")
	two := &models.Set{Models: []models.Model{vad, optimized, model(models.RoleOptimized), embedder, model(models.RoleSegmenter)}}
	assert.Equal(t, map[string]library.Cost{"vad": of(100)}, costs(two, item(36), item(36)))
}
