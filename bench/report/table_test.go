package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	r := report{Machine: "a machine", Version: "abc", Date: "today", Rows: []result{
		{
			What: "a minute", Against: "another", Want: 1.5, Load: []float64{0.1, 0.2, 0.3},
			Reference: []cost{{3, 30}, {1, 10}, {2, 20}}, Ours: []cost{{1, 10}, {1, 5}, {4, 16}},
		},
		{What: "five seconds", Load: []float64{0.1, 4}, Ours: []cost{{1, 2}, {2, 4}}},
	}}
	table := r.table(3)
	assert.Contains(t, table, "| a minute | another | 10.00 against 20.00 s | 2.00 × | 1.00 against 2.00 s | 2.00 × | 1.50 × |\n")
	assert.Contains(t, table, "| five seconds | – | 3.00 s | | 1.50 s | |  |\n")
	assert.Contains(t, table, "0.1 to 4.0")
	assert.Contains(t, table, "only processor time counts")
	r.Rows[1].Load = []float64{0.1, 0.4}
	assert.NotContains(t, r.table(3), "only processor time counts")

	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+begin+"old\n"+end+"after\n"), 0o600))
	require.NoError(t, write(page, table))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, "# Page\n"+begin+"\n"+table+"\n"+end+"after\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+begin), 0o600))
	assert.ErrorContains(t, write(page, table), "has not both")

	// The page of this repository has the marks.
	text, err = os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	assert.Contains(t, string(text), begin)
	assert.Contains(t, string(text), end)
}
