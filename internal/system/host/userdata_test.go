package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDataDir(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	for data, want := range map[string]string{
		"/srv/data": "/srv/data/otograph/models",
		"":          "/home/ann/.local/share/otograph/models",
		"relative":  "/home/ann/.local/share/otograph/models",
	} {
		t.Setenv("XDG_DATA_HOME", data)
		dir, err := DataDir("models")
		require.NoError(t, err)
		assert.Equal(t, want, dir, data)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	_, err := DataDir("models")
	assert.Error(t, err)
}
