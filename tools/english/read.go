package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The kinds of text, in the order of the report.
const (
	goComments   = "comments"
	testComments = "comments of tests"
	shown        = "strings"
	docs         = "documents"
	page         = "page"
)

var kinds = []string{goComments, testComments, shown, docs, page}

// limits are the maximum shares of blocks with a marker, in percent, slightly
// above the present ones.
var limits = map[string]float64{goComments: 0.5, testComments: 9.9, shown: 0.1, docs: 2.5, page: 0}

// leastWords is the minimum number of words of a comment that counts.
const leastWords = 5

// block is one piece of text: a comment, a string or a paragraph.
type block struct {
	kind, path string
	line       int
	text       string
}

// read returns the blocks of one file, none if files of its kind contain no
// text.
func read(path string) ([]block, error) {
	if strings.Contains(path, "testdata/") || strings.HasPrefix(path, "tools/english/") {
		return nil, nil
	}
	switch filepath.Ext(path) {
	case ".go":
		return readGo(path)
	case ".md":
		if path == "CHANGELOG.md" { // published entries do not change
			return nil, nil
		}
		return readLines(path, docs, paragraph)
	case ".ts", ".tsx":
		return readLines(path, page, quoted)
	case ".yaml":
		if path == "httpapi/openapi.yaml" {
			return readLines(path, shown, described)
		}
	}
	return nil, nil
}

// readGo returns comments and string literals of a Go file.
func readGo(path string) ([]block, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	test := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/")
	kind := goComments
	if test {
		kind = testComments
	}
	var all []block
	for _, group := range file.Comments {
		if strings.HasPrefix(group.List[0].Text, "/*") {
			continue // C
		}
		text := strings.Join(strings.Fields(group.Text()), " ")
		if len(strings.Fields(text)) >= leastWords {
			all = append(all, block{kind, path, set.Position(group.Pos()).Line, text})
		}
	}
	if test {
		return all, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			if m := helpTag.FindStringSubmatch(n.Tag.Value); m != nil { // other tags contain no text
				all = append(all, block{shown, path, set.Position(n.Pos()).Line, m[1]})
			}
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && sentence(text) {
				all = append(all, block{shown, path, set.Position(n.Pos()).Line, strings.Join(strings.Fields(text), " ")})
			}
		}
		return true
	})
	return all, nil
}

var helpTag = regexp.MustCompile(`help:"([^"]*)"`)

var statement = regexp.MustCompile(`(?i)^\s*(select|insert|update|delete|with|create|alter|drop|pragma)\s`)

// sentence reports whether a string literal is text for people: at least three
// words, no SQL, no HTML, no Content-Security-Policy.
func sentence(s string) bool {
	return len(strings.Fields(s)) >= 3 && !statement.MatchString(s) && !strings.HasPrefix(s, "<") &&
		!strings.Contains(s, "-src ") && !strings.Contains(s, "base-uri ")
}

var (
	code   = regexp.MustCompile("`[^`]*`")
	quotes = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|` + "`([^`]*)`")
)

// paragraph returns a line of Markdown without its code spans.
func paragraph(line string) []string { return []string{code.ReplaceAllString(line, "`…`")} }

// description matches a description or a summary, or a line of a folded one.
var description = regexp.MustCompile(`(?:description|summary): "?([^">{}][^"{}]*)|^ +([A-Z` + "`" + `a-z0-9][^{}:]*)$`)

// described returns the descriptions of a line of the OpenAPI document.
func described(line string) (all []string) {
	for _, m := range description.FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}

// quoted returns the string literals of a line of TypeScript, and its comment.
func quoted(line string) []string {
	var all []string
	if _, comment, ok := strings.Cut(line, "// "); ok {
		all = append(all, comment)
	}
	for _, m := range quotes.FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2]+m[3])
	}
	return all
}

// readLines returns what extract finds in the lines of a file, outside of fenced
// and indented code.
func readLines(path, kind string, extract func(string) []string) ([]block, error) {
	content, err := os.ReadFile(path) //nolint:gosec // a file that git lists
	if err != nil {
		return nil, err
	}
	var all []block
	fenced := false
	for i, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if kind == docs && (fenced || strings.HasPrefix(line, "    ")) {
			continue
		}
		for _, text := range extract(line) {
			if len(strings.Fields(text)) >= 3 {
				all = append(all, block{kind, path, i + 1, text})
			}
		}
	}
	return all, nil
}
