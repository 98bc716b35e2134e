package test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnitIsHardened checks that systemd rates the unit's exposure at most 1.5
// of 10.0.
func TestUnitIsHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=15", "--no-pager", "../deploy/otograph.service").CombinedOutput()
	require.NoError(t, err, "%s", out) // systemd-analyze fails above the threshold
	assert.NotContains(t, string(out), "Unknown", "systemd knows every setting")
	t.Log(regexp.MustCompile(`Overall exposure level.*`).FindString(string(out)))
}

// TestOpsAddressIsNotPublic checks that unit and image serve /metrics on a
// different address from the API's.
func TestOpsAddressIsNotPublic(t *testing.T) {
	for _, name := range []string{"otograph.service", "Dockerfile"} {
		text, err := os.ReadFile("../deploy/" + name)
		require.NoError(t, err)
		plain := strings.NewReplacer(`"`, "", ",", "").Replace(string(text))
		assert.Regexp(t, `serve .*--ops-addr 127\.0\.0\.1:[0-9]+`, plain, name)
	}
}

// TestImage checks the properties of the container file that its builders rely
// on.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../deploy/Dockerfile")
	require.NoError(t, err)
	dockerfile := string(text)
	bases := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(dockerfile, -1)
	require.Len(t, bases, 2)
	for _, base := range bases {
		assert.Regexp(t, `^[a-z]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}$`, base[1], "a base image is named by its digest")
	}
	final := dockerfile[strings.LastIndex(dockerfile, "FROM "):]
	user := strings.Index(final, "\nUSER 10001:10001\n") // a number: orchestrators check that it is not root
	require.Positive(t, user)
	assert.Greater(t, strings.Index(final, "\nENTRYPOINT "), user, "nothing starts as root")
	assert.Contains(t, final, "\nHEALTHCHECK ")
	assert.Contains(t, dockerfile, "\nENV NATIVE_STRICT=1\n")
	assert.Regexp(t, `(?m)^CMD .*"--require-cage"`, dockerfile)
	ignored, err := os.ReadFile("../.dockerignore")
	require.NoError(t, err)
	for _, name := range []string{".git", "bin", "third_party/native", "web/node_modules"} {
		assert.Contains(t, strings.Split(string(ignored), "\n"), name)
	}
}
