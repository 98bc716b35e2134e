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
			What: "a minute", Against: "another", Want: 1.5, Others: []float64{0.01, 0.02, 0.03},
			Reference: []cost{{3, 30}, {1, 10}, {2, 20}}, Ours: []cost{{1, 10}, {1, 5}, {4, 16}},
		},
		{What: "five seconds", Others: []float64{0.01, 1.4}, Ours: []cost{{1, 2}, {2, 4}}},
	}}
	table := r.table(3)
	assert.Contains(t, table, "| a minute | another | 10.00 against 20.00 s | 2.00 × | 1.00 against 2.00 s | 2.00 × | 1.50 × |\n")
	assert.Contains(t, table, "| five seconds | – | 3.00 s | | 1.50 s | |  |\n")
	assert.Contains(t, table, "3 rounds a row, medians. Other programs took up to 1.4 cores")
	assert.Contains(t, table, "only processor time counts")
	r.Rows[1].Others = []float64{0.01, 0.04}
	quiet := r.table(1)
	assert.Contains(t, quiet, "1 round a row, medians. Other programs took at most 0.04 of a core during a round.\n")
	assert.NotContains(t, quiet, "only processor time counts")
	r.Rows[0].Others = []float64{-1}
	assert.Contains(t, r.table(3), "does not say")

	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+begin+"old\n"+end+"after\n"), 0o600))
	require.NoError(t, write(page, table, r.Rows, false))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, "# Page\n"+begin+"\n"+table+"\n"+end+"after\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+begin), 0o600))
	assert.ErrorContains(t, write(page, table, r.Rows, false), "has not both")

	// The repository's page must have the markers.
	text, err = os.ReadFile("../../docs/measurements/standard-tier.md")
	require.NoError(t, err)
	assert.Contains(t, string(text), begin)
	assert.Contains(t, string(text), end)
}

func TestBusySeconds(t *testing.T) {
	got, known := busyOf("cpu  100 10 20 5000 300 4 6 60 7 0\ncpu0 50 5 10 2500 150 2 3 30 3 0\n")
	assert.True(t, known)
	assert.InDelta(t, 2.0, got, 1e-9)
	for _, stat := range []string{"", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8 9 10\n", "cpu a b c d e f g h i j\n"} {
		_, known := busyOf(stat)
		assert.False(t, known, stat)
	}
}

// TestMeasuringSomeRowsKeepsTheOthers checks that measuring some rows keeps the others, with
// the lines above them.
func TestMeasuringSomeRowsKeepsTheOthers(t *testing.T) {
	row := func(name string, seconds float64) result {
		return result{What: name, Others: []float64{0}, Ours: []cost{{seconds, seconds}}}
	}
	run := func(version string, rows ...result) report { return report{Version: version, Rows: rows} }
	dir := t.TempDir()
	page, file := filepath.Join(dir, "page.md"), filepath.Join(dir, "results.json")
	require.NoError(t, os.WriteFile(page, []byte(begin+end), 0o600))
	for _, r := range []report{
		run("first", row("a", 1), row("b", 2), row("c", 3)),
		run("second", row("b", 4)),
		run("third", row("c", 5), row("b", 6)),
	} {
		earlier, err := load(file)
		require.NoError(t, err)
		require.NoError(t, r.save(file, earlier))
		require.NoError(t, write(page, r.table(1), r.Rows, true))
	}
	third, first := run("third", row("c", 5), row("b", 6)), run("first", row("a", 1))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, begin+"\n"+third.table(1)+"\n"+first.table(1)+"\n"+end, string(text))
	kept, err := load(file)
	require.NoError(t, err)
	assert.Equal(t, []report{third, first}, kept)

	// Measuring everything again replaces all rows.
	require.NoError(t, write(page, first.table(1), first.Rows, false))
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, begin+"\n"+first.table(1)+"\n"+end, string(text))
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = load(file)
	assert.ErrorContains(t, err, file)
}
