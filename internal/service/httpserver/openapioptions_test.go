package httpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/spec"
)

// TestDocumentHasEveryOption checks that the document has every option of the table
// with its bounds, and no other.
func TestDocumentHasEveryOption(t *testing.T) {
	doc := readDocument(t)
	given, effective := doc.Components.Schemas["Options"], doc.Components.Schemas["EffectiveOptions"]
	assert.Len(t, given.Properties, len(spec.Table()))
	assert.Len(t, effective.Properties, len(spec.Table()))
	for _, row := range spec.Table() {
		s, ok := given.Properties[row.Name]
		require.True(t, ok, row.Name)
		assert.Equal(t, row.Help, s.Description, row.Name)
		assert.Equal(t, row.Nullable, strings.Contains(fmt.Sprint(s.Type), "null"), row.Name)
		if row.Kind == spec.KindInt || row.Kind == spec.KindFloat {
			assert.Equal(t, row.Min, s.Minimum, row.Name)
			assert.Equal(t, row.Max, s.Maximum, row.Name)
		}
		if !row.Unlisted() {
			assert.Contains(t, effective.Required, row.Name)
		}
	}
	assert.Equal(t, 1000, given.Properties["initial_prompt"].MaxLength)
	assert.Equal(t, 200, given.Properties["hotwords"].MaxItems)
	assert.Equal(t, 64, given.Properties["hotwords"].Items.MaxLength)
	assert.Equal(t, []any{"word", "segment"}, given.Properties["timestamp_level"].Enum)
	assert.EqualValues(t, 5, given.Properties["asr_beam_size"].Default)
}
