package httpapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestOpenAPIOptions checks that the document has every option of the table
// with its bounds, and no other.
func TestOpenAPIOptions(t *testing.T) {
	doc, err := contract()
	require.NoError(t, err)
	given, effective := doc.Components.Schemas["Options"].Value, doc.Components.Schemas["EffectiveOptions"].Value
	assert.Len(t, given.Properties, len(spec.Table()))
	assert.Len(t, effective.Properties, len(spec.Table()))
	for _, row := range spec.Table() {
		s := given.Properties[row.Name]
		require.NotNil(t, s, row.Name)
		assert.Equal(t, row.Help, s.Value.Description, row.Name)
		assert.Equal(t, row.Nullable, s.Value.Type.Includes("null"), row.Name)
		if row.Kind == spec.KindInt || row.Kind == spec.KindFloat {
			assert.Equal(t, row.Min, s.Value.Min, row.Name)
			assert.Equal(t, row.Max, s.Value.Max, row.Name)
		}
		if !row.Unlisted() {
			assert.Contains(t, effective.Required, row.Name)
		}
	}
	assert.Equal(t, uint64(1000), *given.Properties["initial_prompt"].Value.MaxLength)
	assert.Equal(t, uint64(200), *given.Properties["hotwords"].Value.MaxItems)
	assert.Equal(t, uint64(64), *given.Properties["hotwords"].Value.Items.Value.MaxLength)
	assert.Equal(t, []any{"word", "segment"}, given.Properties["timestamp_level"].Value.Enum)
	assert.EqualValues(t, 5, given.Properties["asr_beam_size"].Value.Default)
}
