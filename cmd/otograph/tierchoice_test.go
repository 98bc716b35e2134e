package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/models"
)

func TestModelsForAllLanguages(t *testing.T) {
	set := func(list ...models.Model) *models.Set { return &models.Set{Models: list} }
	assert.True(t, knowsAll(set(models.Model{Role: models.RoleStandard}, models.Model{Role: models.RoleOptimized, Languages: []string{"en"}})))
	assert.False(t, knowsAll(set(models.Model{Role: models.RoleStandard, Languages: []string{"en"}})), "English alone")
	assert.False(t, knowsAll(set(models.Model{Role: models.RoleOptimized, Languages: []string{"en"}})))
}
