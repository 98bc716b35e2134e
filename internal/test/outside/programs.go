// Package outside gives tests the programs outside of the product: programs of
// the module tools (a fake S3 server, a checker of OpenAPI documents, OpenAI's
// client), whose dependencies stay out of this module, reference programs in
// Python, and a network that fails. It also finds goroutines that tests leave.
package outside

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Referee returns the output of a Python script that has reference programs
// score random cases. OTOGRAPH_REFEREE is a Python in which they are installed.
func Referee(t testing.TB, script string, args ...string) io.Reader {
	t.Helper()
	cmd := exec.Command(os.Getenv("OTOGRAPH_REFEREE"), append([]string{script}, args...)...) //nolint:gosec // the Python that the developer names
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return bytes.NewReader(out)
}

// Program is a running program of tools. It ends at the end of its input, at
// the latest with this process.
type Program struct {
	In  io.WriteCloser
	Out *bufio.Reader
	cmd *exec.Cmd
}

// Start starts the program tools/name.
func Start(name string, args ...string) (*Program, error) {
	cmd, err := command(name, args...)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Program{In: in, Out: bufio.NewReader(out), cmd: cmd}, nil
}

// Close ends the program's input and waits for its end.
func (p *Program) Close() error {
	p.In.Close()
	return p.cmd.Wait()
}

// Run runs the program tools/name to its end and returns its standard output;
// the error has its standard error.
func Run(name string, args ...string) (string, error) {
	cmd, err := command(name, args...)
	if err != nil {
		return "", err
	}
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, log.String())
	}
	return string(out), err
}

// S3 starts a fake S3 server with empty buckets and returns its URL. It ends
// with the test. Its credentials are in AWS's environment variables.
func S3(t testing.TB, buckets ...string) string {
	t.Helper()
	p, err := Start("fakes3", buckets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("fakes3: %v", err)
		}
	})
	address, err := p.Out.ReadString('\n')
	if err != nil {
		t.Fatalf("fakes3: %v", err)
	}
	return strings.TrimSpace(address)
}

// S3Store returns the address of a file store with a prefix in a bucket at
// endpoint, in the form of --blobs.
func S3Store(endpoint, place string) string {
	return "s3://" + place + "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(endpoint)
}

// command returns the command that runs tools/name.
func command(name string, args ...string) (*exec.Cmd, error) {
	at, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		tools := filepath.Join(at, "tools")
		if _, err := os.Stat(filepath.Join(tools, "go.mod")); err == nil {
			return exec.Command("go", append([]string{"run", "-C", tools, "./" + name}, args...)...), nil
		}
		if at == filepath.Dir(at) {
			return nil, fmt.Errorf("tools/%s: the test runs outside Otograph's repository", name)
		}
		at = filepath.Dir(at)
	}
}
