package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/pipeline/engines"
	"github.com/otograph/otograph/spec"
)

// TestMayOptimize checks when only the standard tier may transcribe, so that
// the windows of language detection serve the transcription.
func TestMayOptimize(t *testing.T) {
	for name, c := range map[string]struct {
		stages Stages
		models []string
		want   bool
	}{
		"routed by language":       {models: []string{"en"}, want: true},
		"no optimized model":       {},
		"standard tier chosen":     {stages: Stages{Options: spec.EffectiveOptions{Optimize: new(false)}}, models: []string{"en"}},
		"translation":              {stages: Stages{Translate: true}, models: []string{"en"}},
		"languages without models": {stages: Stages{Among: []string{"ja", "ko"}}, models: []string{"en"}},
		"a language with a model":  {stages: Stages{Among: []string{"ja", "en"}}, models: []string{"en"}, want: true},
	} {
		c.stages.Engines = &engines.Engines{Available: spec.Available{Standard: true, Optimized: c.models}}
		assert.Equal(t, c.want, c.stages.mayOptimize(), name)
	}
}
