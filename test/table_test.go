package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// namedTest matches a test in the table: its folder, if it is another one, and
// its name.
var namedTest = regexp.MustCompile("`(?:([a-z/]+)\\.)?(Test\\w+)`")

// rowsOf checks that README.md has a row for each of a letter's numbers, and
// that every test in the rows exists.
func rowsOf(t *testing.T, letter string, last int) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	named := 0
	for i := 1; i <= last; i++ {
		_, row, found := strings.Cut(string(text), fmt.Sprintf("\n| %s%d ", letter, i))
		require.True(t, found, "no row for %s%d", letter, i)
		row, _, _ = strings.Cut(row, "\n")
		tests := namedTest.FindAllStringSubmatch(row, -1)
		assert.NotEmpty(t, tests, "%s%d names no test", letter, i)
		for _, m := range tests {
			folder := m[1]
			if folder == "" {
				folder = "test"
			}
			assert.Contains(t, functions(t, filepath.Join("..", folder)), m[2], "%s%d: %s", letter, i, folder)
			named++
		}
	}
	t.Logf("%d rows, %d tests named, all there", last, named)
}

// testFunction matches the first line of a test or a benchmark.
var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)

// functions returns the names of the tests and benchmarks of a folder.
func functions(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range testFunction.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// The tables of README.md have a row for each of T1 to T36 and of F1 to F14,
// and every test in them exists.
func TestReadmeListsTests(t *testing.T) {
	rowsOf(t, "T", 36)
	rowsOf(t, "F", 14)
}

// TestCapacityPageNamesCommands: docs/scaling.md states the needs of a
// deployment, and each of its figures names a command. Every test in a
// documented command exists.
func TestCapacityPageNamesCommands(t *testing.T) {
	text, err := os.ReadFile("../docs/scaling.md")
	require.NoError(t, err)
	page := string(text)
	for _, topic := range []string{"Tasks a second a core", "Transactions", "Connections", "PgBouncer", "Disk", "When one database is not enough"} {
		assert.Contains(t, page, "\n**"+topic, "the page says")
	}
	_, table, _ := strings.Cut(page, "| what | figure | command |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	require.Greater(t, len(rows), 8)
	for _, row := range rows {
		assert.Regexp(t, "\\| (the same.*|.*`.+`.*) \\|$", row, "a figure names its command")
	}
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	measurements, err := filepath.Glob("../docs/measurements/*.md")
	require.NoError(t, err)
	commands := 0
	for _, page := range append(append(pages, measurements...), "../README.md", "README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("`go test ([^`]+)`").FindAllStringSubmatch(string(text), -1) {
			commands++
			assertRuns(t, page, strings.Fields(m[1]))
		}
	}
	assert.Greater(t, commands, 10)
	t.Logf("%d figures, %d commands, each of which runs something", len(rows), commands)
}

// assertRuns checks that the arguments of a "go test" name tests or benchmarks
// that exist.
func assertRuns(t *testing.T, page string, args []string) {
	t.Helper()
	folder, module := ".", ".."
	if i := slices.Index(args, "-C"); i >= 0 && i+1 < len(args) {
		module = filepath.Join("..", args[i+1])
	}
	for _, arg := range args {
		if arg == "." || strings.HasPrefix(arg, "./") {
			folder = filepath.Join(module, arg)
		}
	}
	for i, arg := range args[:len(args)-1] {
		pattern := strings.Trim(args[i+1], "'")
		if (arg != "-run" && arg != "-bench") || (arg == "-run" && slices.Contains(args, "-bench")) {
			continue // runs benchmarks only, no tests
		}
		if strings.Contains(pattern, "/") && !strings.HasPrefix(pattern, "(") {
			pattern, _, _ = strings.Cut(pattern, "/")
		}
		kind := map[string]string{"-run": "Test", "-bench": "Benchmark"}[arg]
		called, err := regexp.Compile(pattern)
		require.NoError(t, err, page)
		found := slices.ContainsFunc(functions(t, folder), func(name string) bool {
			return strings.HasPrefix(name, kind) && called.MatchString(name)
		})
		assert.True(t, found, "%s: nothing of %s is called %s", page, folder, pattern)
	}
}
