package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/models"
)

// TestServedModelsAreChecked: the service accepts embedders with 192 numbers or
// an unknown number, and others only with a flag; it logs the charged tier if
// no optimized model is installed.
func TestServedModelsAreChecked(t *testing.T) {
	embedder := func(dims ...any) models.Model {
		path := filepath.Join(t.TempDir(), "voices.onnx")
		g := onnxfile.NewGraph().Input("feats", onnxfile.Float32, "B", "T", 80).Output("embs", onnxfile.Float32, dims...)
		require.NoError(t, os.WriteFile(path, g.Bytes(), 0o600))
		return models.Model{Role: models.RoleEmbedder, Name: "voices", Contract: models.ContractWeSpeaker, Files: []models.File{{Part: models.PartModel, Name: "voices.onnx", Path: path}}}
	}
	quiet := slog.New(slog.DiscardHandler)
	check := func(m models.Model, f servedModelFlags) error {
		return f.checkModels(&models.Set{Models: []models.Model{m}}, quiet)
	}
	require.NoError(t, check(embedder("B", 192), servedModelFlags{}))
	require.NoError(t, check(embedder("B", "D"), servedModelFlags{}))
	require.NoError(t, check(embedder("B", 256), servedModelFlags{AnyEmbedding: true}))
	assert.EqualError(t, check(embedder("B", 256), servedModelFlags{}),
		"voices (embedder, wespeaker): its embeddings have 256 numbers, expected 192 as specified; use --any-embedding to accept it anyway")

	var log bytes.Buffer
	standard := models.Model{Role: models.RoleStandard, Name: "own"}
	english := models.Model{Role: models.RoleOptimized, Name: "english", Languages: []string{"en"}}
	f := servedModelFlags{}
	require.NoError(t, f.checkModels(&models.Set{Models: []models.Model{standard, english}}, slog.New(slog.NewTextHandler(&log, nil))))
	assert.Contains(t, log.String(), "held and charged at its price")
	assert.Contains(t, log.String(), `languages="zh es fr pt"`)
}
