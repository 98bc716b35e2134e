package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
)

func TestModelsForAllLanguages(t *testing.T) {
	set := func(list ...models.Model) *models.Set { return &models.Set{Models: list} }
	assert.True(t, knowsAll(set(models.Model{Role: models.RoleStandard}, models.Model{Role: models.RoleOptimized, Languages: []string{"en"}})))
	assert.False(t, knowsAll(set(models.Model{Role: models.RoleStandard, Languages: []string{"en"}})), "English alone")
	var most []string
	for _, l := range spec.Languages() {
		if l.Code != "yue" {
			most = append(most, l.Code)
		}
	}
	assert.True(t, knowsAll(set(models.Model{Role: models.RoleStandard, Languages: most})), "Whisper before large-v3")
	assert.False(t, knowsAll(set(models.Model{Role: models.RoleStandard, Languages: []string{"en", "de"}})))
	assert.False(t, knowsAll(set(models.Model{Role: models.RoleOptimized, Languages: []string{"en"}})))
}
