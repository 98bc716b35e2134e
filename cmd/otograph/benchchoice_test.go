package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
)

func TestSample(t *testing.T) {
	items := make([]bench.Item, 100)
	for i := range items {
		items[i].Name = strings.Repeat("x", i)
	}
	drawn, err := sample(items, 10, 1)
	require.NoError(t, err)
	assert.Len(t, drawn, 10)
	for i := range drawn[1:] {
		assert.Less(t, len(drawn[i].Name), len(drawn[i+1].Name), "in the order of the manifest")
	}
	again, err := sample(items, 10, 1)
	require.NoError(t, err)
	assert.Equal(t, drawn, again, "the seed decides")
	all, err := sample(items, 0, 1)
	require.NoError(t, err)
	assert.Len(t, all, 100)
	_, err = sample(items, -1, 1)
	require.Error(t, err)
}

func TestOtherRoles(t *testing.T) {
	set := func(vad, standard string) *models.Set {
		return &models.Set{Models: []models.Model{
			{Role: models.RoleVAD, Name: vad, Files: []models.File{{SHA256: vad}}}, {Role: models.RoleStandard, Name: standard, Files: []models.File{{SHA256: standard}}},
		}}
	}
	assert.Empty(t, otherRoles(set("silero", "base"), set("silero", "tiny")))
	assert.Equal(t, []string{"vad (silero, demo-vad)"}, otherRoles(set("silero", "base"), set("demo-vad", "tiny")))
	assert.Equal(t, "tiny", modelName(set("silero", "tiny"), "standard"))
	both := set("silero", "tiny")
	both.Models = append(both.Models, models.Model{Role: models.RoleOptimized, Name: "ctc"})
	assert.Equal(t, "ctc", modelName(both, "optimized"))
	assert.Equal(t, "ctc + tiny", modelName(both, "auto"))
	assert.Empty(t, modelName(&models.Set{}, "auto"))
}

func TestOtherSystems(t *testing.T) {
	t.Setenv("MY_ASR_API_KEY", "secret")
	o := otherSystems{System: []string{"my-asr=http://localhost:1/v1"}, Cmd: []string{"echo=echo {file}"}, Hyp: []string{"old=" + t.TempDir()}, AtOnce: 2, Timeout: 1}
	found, err := o.others(nil)
	require.NoError(t, err)
	require.Len(t, found, 3)
	assert.Equal(t, "MY_ASR_API_KEY", keyName(found[0].Name))
	assert.Equal(t, 2, found[1].Parallel)
	for _, wrong := range []otherSystems{
		{System: []string{"http://localhost"}},
		{Cmd: []string{"a=prog"}},
		{Hyp: []string{"a=/no/such/folder"}},
		{Cmd: []string{"a=echo {file}", "a=echo {file}"}},
	} {
		wrong.AtOnce, wrong.Timeout = 1, 1
		_, err := wrong.others(nil)
		require.Error(t, err, "%+v", wrong)
	}
	_, err = (&otherSystems{}).others(nil)
	require.ErrorContains(t, err, "--at-once")
}
