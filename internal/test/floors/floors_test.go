package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/otograph/otograph"

// pkg is go list's description of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	CgoFiles   []string
	Imports    []string
	Deps       []string
	Module     *struct{ Path string }
}

// name returns the path inside the module, "otograph" for the root.
func (p pkg) name() string { return nameOf(p.ImportPath) }

func nameOf(path string) string {
	if path == module {
		return "otograph"
	}
	return strings.TrimPrefix(path, module+"/")
}

// list returns the packages that go list finds with cgo enabled.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,CgoFiles,Imports,Deps,Module"}, args...)...)
	cmd.Dir, cmd.Stderr = "../../..", os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var all []pkg
	for dec := json.NewDecoder(out); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
	require.NoError(t, cmd.Wait())
	return all
}

// TestNoEngineInTheService checks that the packages of the service link nothing
// native; only workers do.
func TestNoEngineInTheService(t *testing.T) {
	found := list(t, "-deps", "./service", "./internal/service/httpserver", "./internal/service/tasks/...", "./billing", "./spec")
	require.NotEmpty(t, found)
	for _, p := range found {
		if !p.Standard {
			assert.Empty(t, p.CgoFiles, "%s uses cgo", p.ImportPath)
		}
		assert.NotEqual(t, module, p.ImportPath, "the root package links the engines")
	}
}

// TestSpecIsALeaf checks that the vocabulary imports only the standard library.
func TestSpecIsALeaf(t *testing.T) {
	for _, p := range list(t, "-deps", "./spec") {
		if p.name() != "spec" {
			assert.True(t, p.Standard, "spec imports %s", p.ImportPath)
		}
	}
}

// TestCgo checks that C is only used where native libraries are opened, and in
// the command, which looks at its output before Go's runtime starts.
func TestCgo(t *testing.T) {
	allowed := []string{"asr/whispercpp", "cmd/otograph", "internal/engine/ort", "internal/engine/whispernet"}
	var users []string
	for _, p := range list(t, "./...") {
		if len(p.CgoFiles) > 0 {
			users = append(users, p.name())
		}
	}
	assert.Subset(t, allowed, users)
	assert.Contains(t, users, "asr/whispercpp")
}

// TestFloors checks that every package is on a floor of the table in
// docs/architecture.md and imports only packages of lower floors, and, on the
// same floor, only its parents and children.
func TestFloors(t *testing.T) {
	floors := readFloors(t)
	used := map[string]bool{}
	for _, p := range list(t, "./...") {
		row, floor := find(floors, p.name())
		if !assert.NotEmpty(t, row, "%s stands on no floor", p.name()) {
			continue
		}
		used[row] = true
		for _, path := range p.Imports {
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			below, other := find(floors, nameOf(path))
			if other == floor && (row == below || strings.HasPrefix(row, below+"/") || strings.HasPrefix(below, row+"/")) {
				continue
			}
			assert.Less(t, other, floor, "%s (floor %d) imports %s (floor %d)", p.name(), floor, nameOf(path), other)
		}
	}
	for row := range floors {
		assert.True(t, used[row], "the table names %s, which is not a package", row)
	}
}

// apart names the wings that must not know of each other: the packages below
// the first folder of an entry import nothing below the others.
var apart = map[string][]string{
	"internal/engine":   {"internal/service", "internal/pipeline", "httpapi", "billing"},
	"internal/pipeline": {"internal/service", "httpapi", "billing"},
	"internal/service":  {"internal/engine", "internal/pipeline", "audio", "asr", "vad", "diarize", "events", "align"},
	"internal/files":    {"internal/system", "internal/engine", "spec"},
	"internal/system":   {"spec"},
}

// TestWings checks that the wings in apart do not import each other.
func TestWings(t *testing.T) {
	below := func(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
	for _, p := range list(t, "./internal/...") {
		for wing, others := range apart {
			if !below(p.name(), wing) {
				continue
			}
			for _, path := range p.Imports {
				for _, other := range others {
					assert.False(t, ours(path) && below(nameOf(path), other), "%s imports %s", p.name(), nameOf(path))
				}
			}
		}
	}
}

// find returns the entry for a package, or for the nearest folder above it.
func find(floors map[string]int, name string) (row string, floor int) {
	for ; name != "" && name != "."; name, _ = cutLast(name) {
		if floor, ok := floors[name]; ok {
			return name, floor
		}
	}
	return "", -1
}

func cutLast(path string) (parent, last string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// readFloors reads the table of floors.
func readFloors(t *testing.T) map[string]int {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| ([0-9]+) \| (.+?) \| .+ \|$`)
	name := regexp.MustCompile("`([^`]+)`")
	floors := map[string]int{}
	for _, line := range row.FindAllStringSubmatch(string(doc), -1) {
		floor, err := strconv.Atoi(line[1])
		require.NoError(t, err)
		for _, n := range name.FindAllStringSubmatch(line[2], -1) {
			_, twice := floors[n[1]]
			assert.False(t, twice, "%s stands on two floors", n[1])
			floors[n[1]] = floor
		}
	}
	require.Greater(t, len(floors), 20)
	return floors
}

// TestFindTakesTheNearestFolder checks the rule of the nearest folder, because TestFloors could
// otherwise pass by finding nothing.
func TestFindTakesTheNearestFolder(t *testing.T) {
	floors := map[string]int{"asr": 3, "asr/ngram": 1, "internal/db": 1}
	names := []string{"asr", "asr/onnx", "asr/ngram", "internal/db/dbtest", "vad", "internal"}
	var got []string
	for _, n := range names {
		row, floor := find(floors, n)
		got = append(got, row+" "+strconv.Itoa(floor))
	}
	assert.Equal(t, []string{"asr 3", "asr 3", "asr/ngram 1", "internal/db 1", " -1", " -1"}, got)
	assert.True(t, slices.Contains(names, "asr"))
}
