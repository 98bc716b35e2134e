package test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// typed is a tutorial's command and the output it shows.
type typed struct{ command, shown string }

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// typedIn returns the commands of a page's console blocks, in order.
func typedIn(page string) (commands []typed) {
	for _, block := range consoleBlock.FindAllStringSubmatch(page, -1) {
		for _, line := range strings.SplitAfter(block[1], "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands = append(commands, typed{command: strings.TrimSuffix(command, "\n")})
			} else if n := len(commands); n > 0 {
				commands[n-1].shown += line
			}
		}
	}
	return commands
}

// matches reports whether output matches the output that a page shows: "…"
// matches any text within a line, and as a whole line any number of lines.
func matches(shown, output string) bool {
	var pattern strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), "…", ".*") + ` *\n`)
	}
	return regexp.MustCompile(`\A\n*` + pattern.String() + `\s*\z`).MatchString(output + "\n")
}

func TestOutputMatchesThePage(t *testing.T) {
	assert.True(t, matches("a\n…\nb …\n", "a\nx\ny\nb 1\n"))
	assert.True(t, matches("", ""))
	assert.False(t, matches("a", "a\nb\n"))
	assert.False(t, matches("", "error\n"))
}

// TestTutorial types every command of docs/tutorial.md into one shell, in a
// folder like a checkout, and compares the output with the page. The short form
// has the first 14 s of the conversation, which the page shows.
func TestTutorial(t *testing.T) {
	t.Parallel()
	if dbtest.Programs() == "" {
		t.Skip("PostgreSQL's server programs are not installed")
	}
	server, err := dbtest.StartServer()
	require.NoError(t, err)
	defer server.Close()
	page, err := os.ReadFile("../docs/tutorial.md")
	require.NoError(t, err)
	commands := typedIn(strings.ReplaceAll(string(page), "127.0.0.1:8080", fmt.Sprintf("127.0.0.1:%d", freePort(t))))
	require.Greater(t, len(commands), 20)
	if _, err := os.Stat("../web/dist/index.html"); err != nil {
		commands = withoutPage(commands)
	}

	dir := t.TempDir()
	folder, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	if testing.Short() {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "testdata"), 0o700))
		cut := exec.Command("ffmpeg", "-v", "error", "-i", filepath.Join(folder, "conversation.flac"), "-t", "14", filepath.Join(dir, "testdata", "conversation.flac"))
		out, err := cut.CombinedOutput()
		require.NoError(t, err, "%s", out)
	} else {
		require.NoError(t, os.Symlink(folder, filepath.Join(dir, "testdata")))
	}
	recognizer, err := demo.Models().Need(models.RoleOptimized)
	require.NoError(t, err)
	for part, name := range map[models.Part]string{models.PartModel: "my-model.onnx", models.PartTokens: "my-model-tokens.txt"} {
		file, ok := recognizer.File(part)
		require.True(t, ok, part)
		data, err := file.Bytes()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	const mark = "\x1e" // precedes the number and the exit status of a command
	script := "set -m; trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"
	for i, c := range commands {
		script += fmt.Sprintf("%s\nprintf '\\x1e%d %%d\\n' $?\n", c.command, i)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	shell.Cancel = func() error { return shell.Process.Signal(os.Interrupt) }
	shell.WaitDelay = 10 * time.Second
	shell.Dir, shell.Stdin = dir, strings.NewReader(script)
	host, _, _ := strings.Cut(strings.SplitN(server.Source("postgres"), "host=", 2)[1], "&")
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+dbtest.Programs()+":"+os.Getenv("PATH"),
		"XDG_DATA_HOME="+filepath.Join(dir, "share"), "OTOGRAPH_MODELS=", "PGHOST="+host, "PGUSER=postgres", "LC_ALL=C.UTF-8")
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)

	answers := strings.Split(string(out), mark)
	require.Len(t, answers, len(commands)+1, "%s", out)
	for i, c := range commands {
		output := answers[i]
		if i > 0 {
			_, output, _ = strings.Cut(output, "\n")
		}
		number, status, _ := strings.Cut(strings.SplitN(answers[i+1], "\n", 2)[0], " ")
		require.Equal(t, strconv.Itoa(i), number)
		if !strings.HasPrefix(c.command, "kill ") { // such a line exits with the killed process's status
			assert.Equal(t, "0", status, "$ %s\n%s", c.command, output)
		}
		assert.True(t, matches(c.shown, output), "$ %s\nshown:\n%s\nprinted:\n%s", c.command, c.shown, output)
	}
	t.Logf("%d commands, each with the output that the page shows", len(commands))
}

// withoutPage omits the commands that need the embedded page: writing a result
// as HTML.
func withoutPage(commands []typed) []typed {
	commands = slices.DeleteFunc(commands, func(c typed) bool { return strings.Contains(c.command, "-f html") })
	for i := range commands {
		commands[i].shown = strings.ReplaceAll(commands[i].shown, "conversation.html\n", "")
	}
	return commands
}

// freePort returns a port of the loopback address that was free.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
