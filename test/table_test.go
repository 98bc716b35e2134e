package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// namedTest is a test in the table: its folder, if it is not this one, and its name.
var namedTest = regexp.MustCompile("`(?:([a-z/]+)\\.)?(Test\\w+)`")

// The table of README.md has a row for each of T1 to T36, and every test that it names exists.
func TestTableOfReliability(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	sources := map[string]string{}
	source := func(folder string) string {
		if _, known := sources[folder]; !known {
			files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
			require.NoError(t, err)
			for _, f := range files {
				b, err := os.ReadFile(f)
				require.NoError(t, err)
				sources[folder] += string(b)
			}
		}
		return sources[folder]
	}
	named := 0
	for i := 1; i <= 36; i++ {
		_, row, found := strings.Cut(string(text), fmt.Sprintf("\n| T%d ", i))
		require.True(t, found, "no row for T%d", i)
		row, _, _ = strings.Cut(row, "\n")
		tests := namedTest.FindAllStringSubmatch(row, -1)
		assert.NotEmpty(t, tests, "T%d names no test", i)
		for _, m := range tests {
			folder := m[1]
			if folder == "" {
				folder = "test"
			}
			assert.True(t, strings.Contains(source(folder), "func "+m[2]+"("), "T%d: there is no %s in %s", i, m[2], folder)
			named++
		}
	}
	t.Logf("36 rows, %d tests named, all there", named)
}
