package published

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
)

// TestEveryRoleButTranscription checks that the networks fill every role but
// the recognizers' two, unpack to their hashes and have the contracts that they
// state.
func TestEveryRoleButTranscription(t *testing.T) {
	set := Models()
	for _, role := range models.Roles() {
		m, found := set.Role(role)
		require.Equal(t, role != models.RoleStandard && role != models.RoleOptimized, found, role)
		if !found {
			continue
		}
		assert.False(t, m.Demo)
		data, err := m.Main().Data()
		require.NoError(t, err)
		file := t.TempDir() + "/" + m.Main().Name
		require.NoError(t, os.WriteFile(file, data, 0o600))
		recognized, err := models.Recognize(file)
		require.NoError(t, err)
		assert.Equal(t, role, recognized.Role)
		assert.Equal(t, m.Contract, recognized.Contract)
	}
}

func TestEmbeddedModelsAreSmall(t *testing.T) {
	total := len(silero) + len(campplus) + len(segmentation) + len(yamnet)
	assert.Less(t, total, 14_000_000, "bytes in every program")
}

// TestNoticeNamesEveryFile checks that NOTICE names every file.
func TestNoticeNamesEveryFile(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	require.NoError(t, err)
	for _, m := range Models().Models {
		assert.Contains(t, string(notice), m.Main().Name)
		assert.NotEmpty(t, m.License)
	}
}
