package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/outside"
)

// podManifest is the part of a manifest that describes its pods.
type podManifest struct {
	Spec struct {
		Template struct {
			Spec struct {
				SecurityContext struct {
					RunAsUser int `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args            []string
					SecurityContext struct {
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
			}
		}
	}
}

// readPod returns the arguments of the container in a manifest, without flags
// (and their values) that belong to a pod's own network, and its user.
func readPod(t *testing.T, file string, without ...string) (args []string, user int) {
	t.Helper()
	f, err := os.Open("../deploy/kubernetes/" + file)
	require.NoError(t, err)
	defer f.Close()
	var m podManifest
	require.NoError(t, yaml.NewDecoder(f).Decode(&m)) // the first document has the pods
	pod := m.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	require.True(t, pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem, file)
	args = pod.Containers[0].Args
	for _, flag := range without {
		i := slices.Index(args, flag)
		require.Positive(t, i, "%s %s", file, flag)
		args = slices.Delete(args, i, i+2)
	}
	if len(audio.Sandbox().Problems) > 0 { // this machine's kernel lacks parts of it
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--require-cage" })
	}
	return args, pod.SecurityContext.RunAsUser
}

// confine is a script that runs the program $0 as the user $2, without
// privileges, on a read-only root with the folder $1, the native libraries and an
// empty /tmp, as a pod has them.
const confine = `set -e
mount -t tmpfs -o mode=755 none /var/lib
mkdir -p /var/lib/pod/data
touch /var/lib/pod/program
mount --bind "$0" /var/lib/pod/program
mount --bind "$1" /var/lib/pod/data
if [ -n "$OTOGRAPH_NATIVE" ]; then # it may be below /tmp
  mkdir /var/lib/pod/native
  mount --bind "$OTOGRAPH_NATIVE" /var/lib/pod/native
  export OTOGRAPH_NATIVE=/var/lib/pod/native
fi
mount -t tmpfs -o mode=1777 none /tmp
mkdir -p "$1"
mount --bind /var/lib/pod/data "$1"
mount -o remount,bind,ro /var/lib
mount -o remount,bind,ro /
user=$2
export HOME="$1" TMPDIR=/tmp
shift 2
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all -- /var/lib/pod/program "$@"`

// pod returns the command before the program's arguments that runs the program
// like a pod with a data folder. It skips the test where that is not allowed.
func pod(t *testing.T, user int, data string) []string {
	t.Helper()
	program, err := filepath.EvalSymlinks(binary)
	require.NoError(t, err)
	require.NoError(t, os.Chown(data, user, user))
	command := []string{"unshare", "--mount", "sh", "-c", confine, program, data, fmt.Sprint(user)}
	if out, err := exec.Command(command[0], append(command[1:], "version")...).CombinedOutput(); err != nil {
		t.Skipf("this machine allows no mount namespace with another user: %v %s", err, out)
	}
	return command
}

// checkConfined checks that a process has a pod's user, no privileges, and a
// root that even the superuser cannot write to.
func checkConfined(t *testing.T, process, user int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", process)
	status, err := os.ReadFile(proc + "/status")
	require.NoError(t, err)
	for _, line := range []string{fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d", user), "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
		assert.Contains(t, string(status), line+"\n")
	}
	for _, folder := range []string{"/", "/etc", "/usr", "/var/lib"} {
		assert.ErrorIs(t, os.WriteFile(proc+"/root"+filepath.Join(folder, "written"), nil, 0o600), syscall.EROFS, folder)
	}
}

// TestManifestsRunTasks starts a server and two workers with the arguments,
// environment, user and read-only root of deploy/kubernetes on PostgreSQL and
// an S3 server, migrated by the job's, and drains and replaces the workers and
// the server while tasks run: each task is done at its first attempt, and each
// process drains within its grace. Unlike in a pod, these differ: addresses,
// the place of the data folder, the embedded models in place of /models, and no
// seccomp profile of the container runtime.
func TestManifestsRunTasks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a read-only root and another user require root")
	}
	t.Parallel()
	_, source := dbtest.Proxied(t, dbtest.PostgresSource(t)) // over TCP: the socket is in /tmp
	blobs := outside.S3Store(outside.S3(t, "otograph"), "otograph/service")
	log, err := os.CreateTemp(t.TempDir(), "work-*.log")
	require.NoError(t, err)
	start := func(file string) *exec.Cmd {
		args, user := readPod(t, file)
		data := t.TempDir()
		command := slices.Concat(pod(t, user, data), args)
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "OTOGRAPH_MODELS=", "OTOGRAPH_DATA="+data, "OTOGRAPH_DATABASE="+source, "OTOGRAPH_BLOBS="+blobs)
		cmd.Stderr = log
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		})
		return cmd
	}
	logged := func() string {
		text, _ := os.ReadFile(log.Name())
		return string(text)
	}
	require.NoError(t, start("migrate.yaml").Wait(), logged())
	args, user := readPod(t, "server.yaml", "--addr", "--ops-addr")
	args = append(args[1:], "--database", source, "--blobs", blobs)
	data := t.TempDir()
	s := serveUnder(t, data, pod(t, user, data), args...).unlimited()
	checkConfined(t, s.cmd.Process.Pid, user)
	work := func() *exec.Cmd { return start("worker.yaml") }
	workers := []*exec.Cmd{work(), work()}

	var ids []string
	submit := func() {
		for range 3 {
			ids = append(ids, s.create(upload(clip(t, 8, 1.5), map[string]any{"optimize": false, "enable_diarize": false, "enable_audio_events": false, "asr_language": "en"})))
		}
	}
	submit()
	s.wait(ids[0])
	for i, w := range workers {
		checkConfined(t, w.Process.Pid, user)
		replacement := work()
		require.NoError(t, w.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, w.Wait(), "a drained worker ends without an error: %s", logged())
		workers[i] = replacement
	}
	require.NoError(t, s.stop(), s.logged())
	key := s.key
	s = serveUnder(t, data, pod(t, user, data), args...)
	s.key = key
	submit()
	for _, id := range ids {
		assert.Equal(t, "done", s.wait(id)["status"], id)
	}
	var repeated int
	require.NoError(t, s.store().Read().QueryRow("SELECT COUNT(*) FROM tasks WHERE failures > 0 OR interruptions > 0").Scan(&repeated))
	assert.Zero(t, repeated, "nothing failed or was cut off")
	t.Logf("%d tasks, %d processes of user %d drained and replaced on a read-only root: none lost, %d repeated", len(ids), len(workers)+1, user, repeated)
}
