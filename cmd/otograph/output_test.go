package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
)

// escapes is a foreign text that retitles a terminal, clears it, and reverses
// the direction of writing.
const escapes = "\x1b]0;owned\x07\u009b2J\u202etxt\nsecond line\tcolumn"

// TestForeignTextIsCleaned: cells stay on their line, and tables, documents and
// transcripts contain no control characters.
func TestForeignTextIsCleaned(t *testing.T) {
	var out bytes.Buffer
	table := newTable(&out, "TASK", "ERROR")
	table.row("one", escapes)
	table.section("WORKER", "VERSION")
	table.row(escapes, 7)
	require.NoError(t, table.flush())
	assert.Equal(t, 5, strings.Count(out.String(), "\n"), "%q", out.String())
	assert.Equal(t, out.String(), cleanText(out.String()))

	res := &otograph.Result{
		Ran: otograph.Capabilities{ASR: true, Diarize: true, AudioEvents: true}, AudioDuration: 2,
		Segments:    []otograph.Segment{{End: 1, Text: escapes, Speaker: escapes, Words: []otograph.Word{{Word: escapes, End: 1}}}},
		AudioEvents: []otograph.AudioEvent{{Start: 1, End: 2, Class: escapes}},
	}
	out.Reset()
	require.NoError(t, writeText(&out, res, textStyle{words: true}))
	assert.Equal(t, 3, strings.Count(out.String(), "\n"), "%q", out.String())
	assert.Equal(t, out.String(), cleanText(out.String()))
	assert.Contains(t, out.String(), "owned")

	out.Reset()
	redraw(&out, escapes)
	assert.Equal(t, "\r\x1b[K"+cleanLine(escapes), out.String())
}

// TestListAsJSON: a list without entries is [], not null.
func TestListAsJSON(t *testing.T) {
	for want, list := range map[string][]int{"[]": nil, "[1,2]": {1, 2}} {
		printed := outputOf(t, &os.Stdout, func() {
			require.NoError(t, printList(true, list, []string{"NUMBER"}, func(tb table, n int) { tb.row(n) }))
		})
		assert.JSONEq(t, want, printed)
	}
}

// TestPrintedInOnePlace: only output.go prints to the terminal, so that no
// foreign text bypasses it.
func TestPrintedInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if name == "output.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, i := range file.Imports {
			assert.NotEqual(t, `"text/tabwriter"`, i.Path.Value, name)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			var text bytes.Buffer
			for _, part := range append([]ast.Expr{call.Fun}, call.Args[:min(1, len(call.Args))]...) {
				if s, ok := part.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok {
						text.WriteString(x.Name + "." + s.Sel.Name + " ")
					}
				}
			}
			said := text.String()
			for _, bad := range []string{"fmt.Print ", "fmt.Printf ", "fmt.Println ", "os.Stdout.Write", "io.Copy os.Std", "fmt.Fprint os.Std", "fmt.Fprintf os.Std", "fmt.Fprintln os.Std"} {
				assert.False(t, strings.HasPrefix(said, bad), "%s prints by itself: %s", fset.Position(call.Pos()), said)
			}
			return true
		})
	}
	_, err = os.Stat("output.go")
	require.NoError(t, err)
}
