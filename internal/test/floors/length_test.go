package floors

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limits on the lines of a function, except in tests.
const (
	longestFunction = 120
	mostFunctions   = 50 // limit for 95 of 100
)

// TestFunctionsAreShort measures every function of the product.
func TestFunctionsAreShort(t *testing.T) {
	type function struct {
		name  string
		lines int
	}
	var all []function
	files := token.NewFileSet()
	measure := func(path string) error {
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				lines := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1
				all = append(all, function{path + " " + d.Name.Name, lines})
			}
		}
		return nil
	}
	require.NoError(t, fs.WalkDir(os.DirFS("../../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "node_modules" || name == "native" && strings.HasPrefix(path, "third_party") || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return measure(filepath.Join("../../..", path))
	}))
	require.Greater(t, len(all), 1000)
	slices.SortFunc(all, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	for _, f := range all {
		if f.lines <= longestFunction {
			break
		}
		t.Errorf("%s has %d lines, at most %d are allowed", f.name, f.lines, longestFunction)
	}
	at := all[len(all)/20]
	assert.LessOrEqual(t, at.lines, mostFunctions, "the 95th percentile of %d functions", len(all))
	t.Logf("%d functions, longest %d lines, 95th percentile %d", len(all), all[0].lines, at.lines)
}
