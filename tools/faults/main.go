// Command faults puts deliberate faults into the program, one at a time, and
// runs the tests of the package that must find it, in their short form as the
// suite does. It fails if tests stay green or if the text that a fault replaces
// is no longer in its file. The source tree is not changed.
//
//	go run -C tools ./faults [-run NAME] [--] [FLAG...]
//
// The flags are go test's for faults that only the race detector finds. GO names
// the go command.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	run := flag.String("run", "", "only faults whose name matches this regular expression")
	flag.Parse()
	only, err := regexp.Compile(*run)
	if err == nil {
		err = checkout.Enter()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	tried, missed := 0, 0
	for _, f := range faults {
		if !only.MatchString(f.name) {
			continue
		}
		tried++
		begun := time.Now()
		verdict := "found "
		if err := f.check(flag.Args()); err != nil {
			missed++
			verdict = "MISSED " + err.Error() + ":"
		}
		fmt.Printf("%s %s, by %s (%.0f s)\n", verdict, f.name, f.by, time.Since(begun).Seconds())
	}
	fmt.Printf("%d of %d faults found\n", tried-missed, tried)
	if missed > 0 || tried == 0 {
		os.Exit(1)
	}
}

// fault is a fault: in a file, a text that is replaced by another.
type fault struct {
	name     string
	file     string // path from the root
	old, new string
	by       string // path of the package whose tests must find it
	run      string // regular expression of its tests' names; "" means all
	race     bool   // only the race detector finds it
}

// check runs the tests with the fault and returns an error unless they fail.
// raceFlags are the flags of go test with the race detector.
func (f fault) check(raceFlags []string) error {
	overlay, err := f.overlay()
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(overlay))
	args := []string{"test", "-short", "-count", "1", "-failfast", "-overlay", overlay}
	if f.run != "" {
		args = append(args, "-run", f.run)
	}
	if f.race {
		args = slices.Concat(args, raceFlags)
	}
	out, err := exec.Command(cmp.Or(os.Getenv("GO"), "go"), append(args, f.by)...).CombinedOutput()
	switch {
	case err == nil:
		return fmt.Errorf("its tests pass")
	case !strings.Contains(string(out), "--- FAIL"): // it was not built, or ran out of time
		return fmt.Errorf("go test: %w: %s", err, out)
	}
	return nil
}

// overlay writes the file with the fault and the description of it that `go
// build -overlay` reads, and returns the description's path.
func (f fault) overlay() (string, error) {
	source, err := os.ReadFile(f.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), f.old); n != 1 {
		return "", fmt.Errorf("%s: expected the text %q once, found it %d times", f.file, f.old, n)
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "otograph-faults-")
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(f.file))
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), f.old, f.new, 1)), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, description, 0o600)
}
