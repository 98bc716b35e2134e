package floors

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneCompositionRoot checks that serve and work only turn flags into a
// service.Config: package service assembles the service.
func TestOneCompositionRoot(t *testing.T) {
	lines := 0
	for _, name := range []string{"serve.go", "work.go"} {
		path := filepath.Join("../../../cmd/otograph", name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines += bytes.Count(text, []byte("\n"))
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			for _, part := range []string{"internal/service/httpserver", "internal/service/tasks", "internal/service/state", "internal/service/metrics"} {
				assert.NotContains(t, strings.Trim(i.Path.Value, `"`), part, name)
			}
		}
	}
	assert.LessOrEqual(t, lines, 300)
}
