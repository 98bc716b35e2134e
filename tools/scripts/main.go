// Command scripts runs a folder of test scripts (testscript's .txtar files)
// that use the built otograph:
//
//	go run -C tools ./scripts -binary /path/to/otograph test/testdata/script
//
// It prints the output of failed scripts.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	binary := flag.String("binary", "", "the otograph to run")
	flag.Parse()
	if flag.NArg() != 1 || *binary == "" {
		fmt.Fprintln(os.Stderr, "usage: scripts -binary OTOGRAPH FOLDER")
		os.Exit(2)
	}
	if err := run(*binary, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "scripts:", err)
		os.Exit(1)
	}
}

func run(binary, folder string) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all := &scripts{slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	testscript.RunT(all, testscript.Params{
		Dir: folder,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("RECORDING", filepath.Join(root, "testdata", "conversation.flac"))
			env.Setenv("CHECKOUT", root)
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data"))
			env.Setenv("OTOGRAPH_DEMO", "true") // scripts need no download
			for _, name := range []string{"OTOGRAPH_NATIVE", "ONNXRUNTIME_LIB"} {
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"wordcount": wordcount},
	})
	all.running.Wait()
	switch {
	case all.count == 0:
		return fmt.Errorf("%s: expected scripts (*.txtar), found none", folder)
	case all.failed > 0:
		return fmt.Errorf("%d of %d scripts failed", all.failed, all.count)
	}
	fmt.Printf("%d scripts passed\n", all.count)
	return nil
}

// scripts runs scripts in parallel, one on each processor.
type scripts struct {
	script
	slots   chan struct{}
	running sync.WaitGroup
	count   int

	mu     sync.Mutex
	failed int
}

// Run starts one script.
func (a *scripts) Run(name string, f func(testscript.T)) {
	a.count++
	a.running.Go(func() {
		a.slots <- struct{}{}
		s := &script{}
		ended := make(chan struct{})
		go func() { // FailNow and Skip end this goroutine
			defer close(ended)
			f(s)
		}()
		<-ended
		<-a.slots
		if s.failed {
			a.mu.Lock()
			a.failed++
			fmt.Fprintf(os.Stderr, "--- %s\n%s\n", name, s.said.String())
			a.mu.Unlock()
		}
	})
}

// script is one script's testscript.T.
type script struct {
	said   strings.Builder
	failed bool
}

// Run does nothing, because scripts have no subtests.
func (s *script) Run(string, func(testscript.T)) {
	s.Fatal(errors.New("a script has no scripts inside"))
}

// Parallel does nothing: scripts run in parallel anyway.
func (s *script) Parallel() {}

// Verbose reports whether the output of passing scripts is shown.
func (s *script) Verbose() bool { return false }

// Log records a script's message.
func (s *script) Log(args ...any) { fmt.Fprintln(&s.said, args...) }

// Skip ends a script that does not apply here.
func (s *script) Skip(args ...any) {
	s.Log(args...)
	runtime.Goexit()
}

// Fatal ends a script that failed.
func (s *script) Fatal(args ...any) {
	s.Log(args...)
	s.FailNow()
}

// FailNow ends a script that failed.
func (s *script) FailNow() {
	s.failed = true
	runtime.Goexit()
}

// wordcount FILE MIN fails unless FILE contains at least MIN words.
func wordcount(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: wordcount FILE MIN")
	}
	var least int
	if _, err := fmt.Sscan(args[1], &least); err != nil {
		ts.Fatalf("%v", err)
	}
	if n := len(strings.Fields(ts.ReadFile(args[0]))); n < least {
		ts.Fatalf("%s has %d words, want at least %d", args[0], n, least)
	}
}
