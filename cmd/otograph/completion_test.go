package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCompletion completes words with the script in bash: commands, flags with
// their negations, the values of flags.
func TestCompletion(t *testing.T) {
	commands := completionsOf(newParser(t.Context(), true).Model.Node)
	var bash, zsh, fish strings.Builder
	require.NoError(t, writeCompletion(&bash, "bash", commands))
	require.NoError(t, writeCompletion(&zsh, "zsh", commands))
	require.NoError(t, writeCompletion(&fish, "fish", commands))
	assert.True(t, strings.HasSuffix(zsh.String(), bash.String()), "zsh runs the script of bash")
	assert.NotRegexp(t, `\$\{\w+(\[@\])?:(\d+:)?[A-Za-z]`, bash.String(), "zsh takes a letter after a colon for a modifier")
	for _, leaf := range newParser(t.Context(), true).Model.Leaves(true) {
		assert.Contains(t, fish.String(), " -a "+leaf.Name+" ")
	}
	assert.Contains(t, fish.String(), "-n '__fish_seen_subcommand_from transcribe' -s f -x -a 'auto text txt json ")
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("requires bash")
	}
	for line, want := range map[string]string{
		"otograph tran":                                    "transcribe",
		"otograph models ":                                 "list pull import",
		"otograph models pull --qu":                        "--quiet",
		"otograph transcribe --no-cas":                     "--no-cascade",
		"otograph transcribe -f te":                        "text textgrid",
		"otograph transcribe a.wav --format=s --channels ": "mix split auto",
		"otograph transcribe --format=v":                   "--format=vtt", // in zsh
		"otograph transcribe --format = v":                 "vtt",          // in bash
		"otograph transcribe --channels =":                 "mix split auto",
		"otograph bench --tier ":                           "standard optimized cascade auto",
		"otograph completion ":                             "",
	} {
		script := bash.String() + `
cd /var/empty 2>/dev/null || cd "$(mktemp -d)"
IFS=' ' read -r -a COMP_WORDS <<< "$1"
[ "${1: -1}" = ' ' ] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _otograph; echo "${COMPREPLY[@]}"`
		out, err := exec.Command(program, "-c", script, "bash", line).CombinedOutput()
		require.NoError(t, err, "%s", out)
		got := strings.TrimSpace(string(out))
		if line == "otograph models " || line == "otograph completion " {
			assert.True(t, strings.HasPrefix(got, want), "%s: %s", line, got)
			continue
		}
		assert.Equal(t, want, got, line)
	}
	cmd := exec.Command(program, "-c", bash.String()+`
touch 'my talk.wav'; COMP_WORDS=(otograph transcribe my); COMP_CWORD=2; _otograph; echo "${#COMPREPLY[@]}" "${COMPREPLY[@]}"`)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "1 my talk.wav\n", string(out))
}
