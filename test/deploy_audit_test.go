package test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAuditFailsWithoutTheDatabase checks that, without the vulnerability
// database, make audit fails with a specific code and message before it builds
// anything.
func TestAuditFailsWithoutTheDatabase(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("bash", "../deploy/release/audit.sh")
	cmd.Env = append(os.Environ(), "GOVULNDB=file://"+t.TempDir(), "GO=false")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v", err)
	assert.Equal(t, 3, exit.ExitCode())
	assert.Contains(t, string(out), "nothing was checked")
}
