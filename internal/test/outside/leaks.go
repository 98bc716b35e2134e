package outside

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Main runs a package's tests, and exits with 1 if goroutines are left.
func Main(tests interface{ Run() int }) {
	code := tests.Run()
	if left := Leaks(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// Leaks returns the stacks of the goroutines that do not end within two seconds,
// "" for none. It leaves out the caller, the goroutines of Go's runtime and of
// package testing, and each goroutine whose header ("goroutine 7 ") or innermost
// function begins with an element of known.
func Leaks(known ...string) (left string) {
	for begun := time.Now(); time.Since(begun) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		left = strings.Join(slices.DeleteFunc(stacks(), func(stack string) bool {
			_, function, _ := strings.Cut(stack, "\n")
			return harmless.MatchString(stack) || slices.ContainsFunc(known, func(k string) bool {
				return strings.HasPrefix(stack, k) || strings.HasPrefix(function, k)
			})
		}), "\n\n")
		if left == "" {
			return ""
		}
	}
	return "goroutines are left:\n" + left
}

// Running returns the beginnings of the headers of all goroutines, for Leaks.
func Running() (headers []string) {
	for _, stack := range stacks() {
		header, _, _ := strings.Cut(stack, "[")
		headers = append(headers, header)
	}
	return headers
}

// harmless matches the stacks of goroutines that end with the process: those of
// parallel tests that wait, of C's threads, of signals and of traces.
var harmless = regexp.MustCompile(`^goroutine \d+[^\n]* \[(chan receive[^\n]*:\ntesting\.|syscall[^\n]*:\nruntime\.goexit|[^\n]*:\n(testing\.runFuzz|runtime\.ensureSigM|os/signal\.(signal_recv|loop)|runtime/trace\.|runtime\.ReadTrace))`)

// stacks returns the stacks of all goroutines but the caller's.
func stacks() []string {
	for size := 1 << 16; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return strings.Split(strings.TrimSpace(string(text[:n])), "\n\n")[1:]
		}
	}
}
