//go:build long

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServiceStartsUnderTheUnit boots systemd in namespaces, starts the unit
// unchanged except for its log destination, and transcribes a recording. Every
// setting of the unit is in force, and the decoder's cage is complete.
func TestServiceStartsUnderTheUnit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can boot a systemd")
	}
	for _, program := range []string{"/lib/systemd/systemd", "/usr/bin/nsenter", "/usr/bin/unshare", "/usr/bin/curl"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if _, err := os.Stat("../bin/otograph"); err != nil {
		t.Skip("bin/otograph is not built: make build")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, exec.Command("cp", "-a", "../bin/otograph", "../deploy/otograph.service", dir).Run())
	require.NoError(t, exec.Command("cp", "-a", "../third_party/native/lib", filepath.Join(dir, "lib")).Run())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "task.json"), bootedTask(t), 0o644))

	boot := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--cgroup", "--net", "--mount-proc", "sh", "testdata/boot.sh", dir)
	boot.Stdout, boot.Stderr = os.Stderr, os.Stderr
	require.NoError(t, boot.Start())
	t.Cleanup(func() {
		_ = boot.Process.Signal(syscall.SIGKILL)
		_ = boot.Wait()
	})
	first := ""
	require.Eventually(t, func() bool {
		children, _ := os.ReadFile("/proc/" + strconv.Itoa(boot.Process.Pid) + "/task/" + strconv.Itoa(boot.Process.Pid) + "/children")
		first = strings.TrimSpace(string(children))
		name, _ := os.ReadFile("/proc/" + first + "/comm")
		return strings.TrimSpace(string(name)) == "systemd"
	}, 30*time.Second, 50*time.Millisecond)
	inside := func(command string) (string, error) {
		out, err := exec.Command("nsenter", "-t", first, "-m", "-p", "-i", "-u", "-C", "-n", "sh", "-c", command).CombinedOutput()
		return string(out), err
	}
	if !assert.Eventually(t, func() bool { _, err := inside("systemctl list-units"); return err == nil }, 30*time.Second, 100*time.Millisecond) {
		t.Skip("systemd does not come up in namespaces here")
	}
	out, err := inside("systemctl set-environment OTOGRAPH_DEMO=true; systemctl start otograph")
	require.NoError(t, err, out)
	ready := func() bool { _, err := inside("curl -sf http://127.0.0.1:9090/readyz"); return err == nil }
	if !assert.Eventually(t, ready, time.Minute, 100*time.Millisecond) {
		log, _ := inside("cat /run/otograph.log; systemctl --no-pager status otograph")
		t.Fatal(log)
	}
	log, err := inside("cat /run/otograph.log")
	require.NoError(t, err)
	assert.Contains(t, log, "the decoder's sandbox is complete")
	assert.NotRegexp(t, `asr_[0-9A-Za-z]{40}`, log, "the journal has no key")
	out, err = inside("stat -c %a /var/lib/private/otograph/first-api-key; grep NoNewPrivs /proc/$(systemctl show -P MainPID otograph)/status")
	require.NoError(t, err, out)
	assert.Contains(t, out, "600")
	assert.Regexp(t, `NoNewPrivs:\s+1`, out)
	out, err = inside("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/metrics")
	require.NoError(t, err, out)
	assert.Equal(t, "404", out, "metrics are not on the API's address")

	const api = "curl -sf -H \"X-API-Key: $(cat /var/lib/private/otograph/first-api-key)\" -H 'Content-Type: application/json' "
	out, err = inside(api + "--data-binary @" + dir + "/task.json http://127.0.0.1:8080/v1/tasks")
	require.NoError(t, err, out)
	done := func() bool {
		out, _ = inside(api + "http://127.0.0.1:8080/v1/tasks?status=done")
		return strings.Contains(out, `"total":1`)
	}
	require.Eventually(t, done, 2*time.Minute, 200*time.Millisecond, out)
	out, err = inside("systemctl stop otograph; systemctl show -P Result otograph")
	require.NoError(t, err, out)
	assert.Equal(t, "success", strings.TrimSpace(out))
}

// bootedTask returns the request body for a task.
func bootedTask(t *testing.T) []byte {
	t.Helper()
	out, err := exec.Command("sh", "-c", `base64 -w0 ../testdata/conversation.flac | sed 's/.*/{"audio_filename":"r.flac","audio_base64":"&"}/'`).Output()
	require.NoError(t, err)
	return out
}
