package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/otograph/otograph/tools/internal/checkout"
)

// TestFaultsApply: the text that each fault replaces is in its file once, and
// the package that must find it exists.
func TestFaultsApply(t *testing.T) {
	if err := checkout.Enter(); err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		overlay, err := f.overlay()
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		os.RemoveAll(filepath.Dir(overlay))
		if tests, err := filepath.Glob(filepath.Join(f.by, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%s: %s: expected tests, found none (%v)", f.name, f.by, err)
		}
	}
}
