package test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/subtitle"
)

// TestReference compares docs/reference.md with the program's options.
// OTOGRAPH_UPDATE=1 rewrites the page.
func TestReference(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	const path = "../docs/reference.md"
	current, err := os.ReadFile(path)
	require.NoError(t, err)
	page := ""
	for range 15 { // some metrics appear seconds after the start
		page = "# Reference\n\nThis page is generated: `OTOGRAPH_UPDATE=1 go test ./test -run TestReference` writes it, and the test fails if it is out of date.\n" +
			optionTable() + formatTable() + commandTable(t) + endpointTable(t) + metricTable(t, s)
		if page == string(current) {
			return
		}
		time.Sleep(time.Second)
	}
	if os.Getenv("OTOGRAPH_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o666))
		return
	}
	assert.Equal(t, page, string(current), "docs/reference.md is out of date: OTOGRAPH_UPDATE=1 go test ./test -run TestReference")
}

func heading(title, text, columns string) string {
	n := strings.Count(columns, "|") - 1
	return "\n## " + title + "\n\n" + text + "\n\n" + columns + "\n|" + strings.Repeat(" --- |", n) + "\n"
}

func optionTable() string {
	out := heading("Options", "Options of a task (`options` in JSON). `otograph transcribe` and `bench` have a flag of the same name for each, with hyphens.",
		"| option | values | default | |")
	for _, o := range spec.Table() {
		value, start := o.Kind.String(), fmt.Sprintf("`%v`", o.Default)
		switch {
		case o.Enum != nil:
			value = "`" + strings.Join(o.Enum, "`, `") + "`"
		case o.Min != nil && o.Max != nil:
			value += fmt.Sprintf(" from %v to %v", *o.Min, *o.Max)
		}
		switch {
		case o.Unlisted():
			start = "–"
		case o.Default == nil:
			start = "`null`"
		}
		out += fmt.Sprintf("| `%s` | %s | %s | %s |\n", o.Name, value, start, o.Help)
	}
	return out
}

func formatTable() string {
	out := heading("Formats", "Written by `transcribe --format` and `GET /tasks/{id}/transcript?format=`. The command also writes `text`, `json` and `html`.",
		"| format | extension | media type |")
	for _, f := range subtitle.Formats() {
		out += fmt.Sprintf("| `%s` | `%s` | `%s` |\n", f, f.Extension(), f.MediaType())
	}
	return out
}

// helped matches a command and its help in the output of otograph help all.
var helped = regexp.MustCompile(`(?m)^  ([a-z-]+(?: [a-z]+)?) {2,}(\S.*(?:\n {10,}\S.*)*)`)

func commandTable(t *testing.T) string {
	help, err := exec.Command(binary, "help", "all").Output()
	require.NoError(t, err)
	out := heading("Commands", "`otograph COMMAND --help` lists the flags of a command.", "| command | |")
	found := helped.FindAllStringSubmatch(string(help), -1)
	require.Greater(t, len(found), 30)
	for _, m := range found {
		out += fmt.Sprintf("| `otograph %s` | %s |\n", m[1], strings.Join(strings.Fields(m[2]), " "))
	}
	return out
}

func endpointTable(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("..", "httpapi", "openapi.yaml"))
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	out := heading("API", "Paths below `/v1`. The whole description, with every field, is the OpenAPI document of each server at `/openapi.json`, shown as a page at `/docs`.",
		"| endpoint | |")
	var rows []string
	for path, methods := range document.Paths {
		for method, node := range methods {
			var operation struct{ Summary string }
			if node.Kind != yaml.MappingNode || node.Decode(&operation) != nil || operation.Summary == "" {
				continue
			}
			rows = append(rows, fmt.Sprintf("| `%s %s` | %s |\n", strings.ToUpper(method), path, operation.Summary))
		}
	}
	require.Greater(t, len(rows), 20)
	slices.SortFunc(rows, func(a, b string) int {
		return cmp.Or(strings.Compare(a[strings.Index(a, "/"):strings.Index(a, "` |")], b[strings.Index(b, "/"):strings.Index(b, "` |")]), strings.Compare(a, b))
	})
	return out + strings.Join(rows, "")
}

func metricTable(t *testing.T, s *server) string {
	response, err := http.Get(strings.TrimSuffix(s.url, "/v1") + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)`).FindAllStringSubmatch(string(text), -1) {
		kinds[m[1]] = m[2]
	}
	out := heading("Metrics", "Served at `/metrics`, besides those of Go's runtime and the process. Metrics appear with their first value; alerts are in [alerts.md](alerts.md).",
		"| metric | type | |")
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^# HELP (otograph_\S+) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], kinds[m[1]], strings.ReplaceAll(m[2], "|", "\\|")))
	}
	require.Greater(t, len(rows), 10)
	slices.Sort(rows)
	return out + strings.Join(rows, "")
}

// TestIndexOfDocs checks that docs/README.md links every page of the folder,
// and that each of the documentation's links to a file leads to one.
func TestIndexOfDocs(t *testing.T) {
	index, err := os.ReadFile("../docs/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" {
			assert.Contains(t, string(index), "]("+name+")", "docs/README.md links each page")
		}
	}
	more, err := filepath.Glob("../docs/*/*.md")
	require.NoError(t, err)
	links := 0
	for _, page := range append(append(pages, more...), "../README.md", "../CONTRIBUTING.md", "../third_party/README.md", "README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			target := filepath.Join(filepath.Dir(page), m[1])
			content, err := os.ReadFile(target)
			if err != nil {
				_, err = os.Stat(target)
			}
			assert.NoError(t, err, "%s: %s", page, m[0])
			if m[2] != "" && strings.HasSuffix(target, ".md") {
				assert.Contains(t, anchors(string(content)), m[2][1:], "%s: %s", page, m[0])
			}
		}
	}
	t.Logf("%d pages, %d links", len(pages)+len(more), links)
}

// anchors returns the link targets of a page's headings.
func anchors(page string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(name, " ", "-"))
	}
	return list
}
