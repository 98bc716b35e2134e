// Package test runs the built binary like a user.
package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
)

// binary is the path of the otograph command, built once for all tests of the
// package.
var binary string

// stripped builds a program without debug information, like the released one:
// no test reads it, and the program links faster.
const stripped = "-ldflags=-s -w"

// atOnce is how many tests run at a time, unless -parallel is given. They wait
// for the built program and its timers most of the time.
const atOnce = "6"

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "otograph-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "otograph")
	for name, value := range map[string]string{
		"OTOGRAPH_DEMO":     "true", // tests that are about other models unset it
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		os.Setenv(name, value)
	}
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The tests can also run a binary that was built elsewhere, such as a
	// release. A binary outside the checkout does not look for libraries in it.
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
	cmd := exec.Command("go", "build", stripped, "-o", binary, "../cmd/otograph")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return dbtest.Main(m)
}

// The scripts in testdata/script are command line sessions: commands, their
// output and their exit status.
func TestScripts(t *testing.T) {
	t.Parallel()
	out, err := outside.Run("scripts", "-binary", binary, "test/testdata/script")
	require.NoError(t, err, "%s", out)
}
