// Package test runs the built binary as a user would.
package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/otograph/otograph/internal/db/dbtest"
)

// binary is the otograph command, built once for all tests of the package.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "otograph-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "otograph")
	// A binary that was built elsewhere, a release for one, can be put to the same tests.
	// A binary outside the checkout does not look for libraries in it.
	if lib, err := filepath.Abs("../third_party/native/lib"); err == nil && os.Getenv("OTOGRAPH_NATIVE") == "" {
		if _, err := os.Stat(lib); err == nil {
			os.Setenv("OTOGRAPH_NATIVE", lib)
		}
	}
	if other := os.Getenv("OTOGRAPH_BINARY"); other != "" {
		if other, err = filepath.Abs(other); err == nil {
			err = os.Symlink(other, binary)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return dbtest.Main(m)
	}
	cmd := exec.Command("go", "build", "-o", binary, "../cmd/otograph")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return dbtest.Main(m)
}

// The scripts in testdata/script are sessions with the command line: what is
// typed, what comes out, how it ends.
func TestScripts(t *testing.T) {
	recording, err := filepath.Abs("../testdata/conversation.flac")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("RECORDING", recording)
			env.Setenv("CHECKOUT", root)
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data"))
			for _, name := range []string{"OTOGRAPH_NATIVE", "ONNXRUNTIME_LIB"} {
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"wordcount": wordcount},
	})
}

// wordcount FILE MIN fails unless FILE holds at least MIN words.
func wordcount(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: wordcount FILE MIN")
	}
	var least int
	if _, err := fmt.Sscan(args[1], &least); err != nil {
		ts.Fatalf("%v", err)
	}
	n, inWord := 0, false
	for _, r := range ts.ReadFile(args[0]) {
		space := r == ' ' || r == '\n' || r == '\t'
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	if n < least {
		ts.Fatalf("%s has %d words, want at least %d", args[0], n, least)
	}
}
