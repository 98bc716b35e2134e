package models

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNeedErrorSuggestsARemedy(t *testing.T) {
	_, err := (&Set{Name: "mine"}).Need(RoleVAD)
	require.ErrorIs(t, err, ErrMissing)
	for _, s := range []string{"vad", "mine", "silero-v5", "models pull", "--vad-model"} {
		assert.ErrorContains(t, err, s)
	}
	var none *Set
	_, err = none.Need(RoleTagger)
	require.ErrorIs(t, err, ErrMissing)
}

func TestMergeChangesNeitherSet(t *testing.T) {
	a := &Set{Name: "a", Models: []Model{{Role: RoleOptimized, Name: "real", Languages: []string{"en"}}}}
	b := &Set{Name: "b", Models: []Model{{Role: RoleOptimized, Name: "demo", Languages: []string{"de"}}, {Role: RoleVAD, Name: "v"}}}
	m := a.Merge(b)
	assert.Len(t, m.Models, 2)
	_, ok := m.OptimizedFor("de")
	assert.False(t, ok, "a demonstration model is no fallback for a language")
	assert.Len(t, a.Models, 1)
	assert.Len(t, b.Models, 2)
	assert.Equal(t, "b", (*Set)(nil).Merge(b).Name)
	assert.Equal(t, a, a.Merge(nil))
}

// TestAvailableLanguages checks that the optimized tier serves the configured
// languages, or all that its models list; a model that lists none only serves
// the specification's languages.
func TestAvailableLanguages(t *testing.T) {
	five := []string{"zh", "en", "es", "fr", "pt"}
	model := func(languages ...string) *Set {
		return &Set{Models: []Model{{Role: RoleOptimized, Name: "fast", Languages: languages}}}
	}
	for _, c := range []struct {
		set  *Set
		held []string
		want []string
	}{
		{model("de", "en", "yue"), nil, []string{"en", "de", "yue"}},
		{model("de", "en", "yue"), five, []string{"en"}},
		{model(), nil, five},
		{model(), five, five},
		{model("de"), five, nil},
	} {
		assert.ElementsMatch(t, c.want, c.set.Available(c.held...).Optimized)
	}
}

// A file's content is in memory or on disk; a missing file has its own error.
func TestFileBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.txt")
	require.NoError(t, os.WriteFile(path, []byte("a b"), 0o600))
	got, err := File{Path: path}.Bytes()
	require.NoError(t, err)
	assert.Equal(t, "a b", string(got))
	got, err = File{Path: path, Data: func() ([]byte, error) { return []byte("embedded"), nil }}.Bytes()
	require.NoError(t, err)
	assert.Equal(t, "embedded", string(got))
	_, err = File{Path: path + ".absent"}.Bytes()
	require.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, path+".absent")
}
