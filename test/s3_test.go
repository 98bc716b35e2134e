package test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/test/outside"
)

// s3Server is an S3 server that can be made unavailable: versitygw, if
// installed, is killed and restarted; otherwise a proxy cuts the connections to
// tools/fakes3.
type s3Server struct {
	name   string
	source string
	folder string // of the bucket; "" if it has none
	leave  func()
	back   func()
}

func newS3(t *testing.T) *s3Server {
	source := func(address string) string {
		return outside.S3Store("http://"+address, "otograph/service")
	}
	program, err := exec.LookPath("versitygw")
	if err != nil {
		address := strings.TrimPrefix(outside.S3(t, "otograph"), "http://")
		proxy := outside.NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", address) })
		return &s3Server{name: "fakes3", source: source(proxy.Addr()), leave: proxy.Cut, back: proxy.Pass}
	}
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "otograph"), 0o755))
	var cmd *exec.Cmd
	address := ""
	start := func() bool {
		started := exec.Command(program, "--access", "test", "--secret", "test", "--port", address, "posix", root)
		require.NoError(t, started.Start())
		cmd = started
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = started.Wait()
		}()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			select {
			case <-ended:
				return false
			default:
			}
			if c, err := net.Dial("tcp", address); err == nil {
				c.Close()
				return true
			}
		}
		return false
	}
	s := &s3Server{name: "versitygw", folder: filepath.Join(root, "otograph")}
	s.back = func() { require.True(t, start(), "versitygw does not start") }
	s.leave = func() {
		_ = cmd.Process.Kill()
		require.Eventually(t, func() bool {
			c, err := net.Dial("tcp", address)
			if err == nil {
				c.Close()
			}
			return err != nil
		}, patience, 10*time.Millisecond)
	}
	for try := 0; ; try++ { // another process may take the port before versitygw does
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address = l.Addr().String()
		require.NoError(t, l.Close())
		if start() {
			break
		}
		require.Less(t, try, 5, "versitygw does not start")
	}
	s.source = source(address)
	t.Cleanup(s.leave)
	return s
}
