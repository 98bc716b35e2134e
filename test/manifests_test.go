package test

import (
	"os"
	"os/exec"
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

// manifestArgs returns the arguments of the container in a manifest, without
// flags (and their values) that belong to a pod's own network.
func manifestArgs(t *testing.T, file string, without ...string) (args []string) {
	t.Helper()
	f, err := os.Open("../deploy/kubernetes/" + file)
	require.NoError(t, err)
	defer f.Close()
	var m struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Args []string } }
			}
		}
	}
	require.NoError(t, yaml.NewDecoder(f).Decode(&m)) // the first document has the pods
	require.Len(t, m.Spec.Template.Spec.Containers, 1)
	args = m.Spec.Template.Spec.Containers[0].Args
	for _, flag := range without {
		i := slices.Index(args, flag)
		require.Positive(t, i, "%s %s", file, flag)
		args = slices.Delete(args, i, i+2)
	}
	if len(audio.Sandbox().Problems) > 0 { // this machine's kernel lacks parts of it
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--require-cage" })
	}
	return args
}

// TestManifestsRunTasks starts a server and two workers with the arguments and
// environment of deploy/kubernetes on PostgreSQL and an S3 server, migrated by
// the job's, and drains and replaces the workers and the server while tasks
// run: each task is done, at its first attempt, and everyone drains in peace.
func TestManifestsRunTasks(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	source, blobs := dbtest.PostgresSource(t), outside.S3Store(outside.S3(t, "otograph"), "otograph/service")
	log, err := os.CreateTemp(t.TempDir(), "work-*.log")
	require.NoError(t, err)
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=", "OTOGRAPH_DATA="+t.TempDir(), "OTOGRAPH_DATABASE="+source, "OTOGRAPH_BLOBS="+blobs)
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
	require.NoError(t, start(manifestArgs(t, "migrate.yaml")...).Wait())
	s := serve(t, t.TempDir(), append(manifestArgs(t, "server.yaml", "--addr", "--ops-addr")[1:], "--database", source, "--blobs", blobs)...).unlimited()
	work := func() *exec.Cmd { return start(manifestArgs(t, "worker.yaml")...) }
	workers := []*exec.Cmd{work(), work()}

	var ids []string
	submit := func() {
		for range 4 {
			ids = append(ids, s.create(upload(clip(t, 8, 1.5), map[string]any{"optimize": false, "enable_diarize": false, "enable_audio_events": false, "asr_language": "en"})))
		}
	}
	submit()
	s.wait(ids[0])
	for i, w := range workers {
		replacement := work()
		require.NoError(t, w.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, w.Wait(), "a drained worker ends without an error")
		workers[i] = replacement
	}
	require.NoError(t, s.stop())
	s = s.again()
	submit()
	for _, id := range ids {
		assert.Equal(t, "done", s.wait(id)["status"], id)
	}
	var repeated int
	require.NoError(t, s.store().Read().QueryRow("SELECT COUNT(*) FROM tasks WHERE failures > 0 OR interruptions > 0").Scan(&repeated))
	assert.Zero(t, repeated, "nothing failed or was cut off")
}
