package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBillOfThisBinary checks that the test binary's bill of materials names a
// linked module, Go itself, and the page's packages that are not only for
// development.
func TestBillOfThisBinary(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "package-lock.json")
	require.NoError(t, os.WriteFile(lock, []byte(`{"packages": {"": {"name": "page"},
		"node_modules/@preact/signals": {"version": "2.11.4"}, "node_modules/typescript": {"version": "7.0.2", "dev": true}}}`), 0o600))
	binary, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(&out, binary, "v1.2.3", lock))
	var bill struct {
		BOMFormat string `json:"bomFormat"`
		Metadata  struct {
			Component struct {
				Version string `json:"version"`
			} `json:"component"`
		} `json:"metadata"`
		Components []struct {
			Name, Version, Purl string
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &bill))
	assert.Equal(t, "CycloneDX", bill.BOMFormat)
	assert.Equal(t, "v1.2.3", bill.Metadata.Component.Version)
	found := map[string]string{}
	for _, c := range bill.Components {
		found[c.Name] = c.Purl
	}
	assert.Contains(t, found, "std")
	assert.Regexp(t, `^pkg:golang/github.com/CycloneDX/cyclonedx-go@v\d`, found["github.com/CycloneDX/cyclonedx-go"])
	assert.Equal(t, "pkg:npm/%40preact/signals@2.11.4", found["@preact/signals"])
	assert.NotContains(t, found, "typescript")

	assert.ErrorContains(t, run(&out, lock, "", ""), "package-lock.json")
	_, err = packages([]byte(`{"packages": {"node_modules/a": {}}}`))
	assert.ErrorContains(t, err, `packages["node_modules/a"]: expected a version`)
}
