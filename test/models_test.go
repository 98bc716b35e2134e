package test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// roleFlags maps a role to the flag that names its model file.
var roleFlags = map[models.Role]string{
	models.RoleStandard: "--standard-model", models.RoleVAD: "--vad-model", models.RoleEmbedder: "--embedder-model", models.RoleTagger: "--tagger-model",
}

// demoFiles returns the embedded models of the roles above.
func demoFiles(t *testing.T) map[models.Role][]byte {
	t.Helper()
	found := map[models.Role][]byte{}
	for _, m := range demo.Models().Models {
		if roleFlags[m.Role] != "" && len(m.Files) == 1 {
			data, err := m.Files[0].Data()
			require.NoError(t, err)
			found[m.Role] = data
		}
	}
	require.Len(t, found, len(roleFlags))
	return found
}

// T8: model files that are truncated, damaged, or of another kind. The outcome
// is an error that names file and role or, if only numbers changed, a
// transcript; a signal never kills the process.
func TestHostileModels(t *testing.T) {
	t.Parallel()
	good := demoFiles(t)
	dir := t.TempDir()
	recording := filepath.Join(dir, "clip.wav")
	require.NoError(t, os.WriteFile(recording, clip(t, 8, 1.5), 0o600))
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	runs, refused, borne := 0, 0, 0
	for role, flag := range roleFlags {
		data := good[role]
		other := good[models.RoleStandard]
		if role == models.RoleStandard {
			other = good[models.RoleVAD]
		}
		flipped := bytes.Clone(data)
		for range 64 {
			flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
		}
		for damage, content := range map[string][]byte{"cut in half": data[:len(data)/2], "of another role": other, "bits flipped": flipped} {
			if testing.Short() && damage == "bits flipped" && role != models.RoleStandard && role != models.RoleTagger {
				continue // most run to the end
			}
			name := fmt.Sprintf("model-%d.bin", runs)
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, content, 0o600))
			cmd := exec.Command(binary, "transcribe", "-q", "--format", "json", "--optimize=false", flag, file, recording)
			cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "OTOGRAPH_MODELS=")
			var out bytes.Buffer
			cmd.Stderr = &out
			err := cmd.Run()
			runs++
			if err == nil {
				assert.Equal(t, "bits flipped", damage, "%s %s was taken", role, damage)
				borne++
				continue
			}
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "%v", err)
			assert.Contains(t, []int{1, 2}, exit.ExitCode(), "seed %d: %s %s: %s", seed, role, damage, &out)
			assert.NotContains(t, out.String(), "goroutine ", "%s %s", role, damage)
			if damage != "bits flipped" {
				assert.Contains(t, out.String(), name, "%s %s", role, damage)
				assert.Contains(t, out.String(), string(role), "%s %s", role, damage)
			}
			refused++
		}
	}
	t.Logf("T8: seed %d: %d damaged models: %d refused with file and role, %d with flipped bits ran through; no process died of a signal", seed, runs, refused, borne)
}

// T8: a model file breaks while the service runs. The serving process survives,
// and tasks continue once the file is restored.
func TestModelBreaksUnderTheService(t *testing.T) {
	t.Parallel()
	data := demoFiles(t)[models.RoleVAD]
	file := filepath.Join(t.TempDir(), "voice.onnx")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	s := serve(t, t.TempDir(), "--vad-model", file).unlimited()
	id := s.create(upload(clip(t, 8, 1.5), quick))
	require.Equal(t, "done", s.wait(id)["status"], s.logged())
	require.NoError(t, os.WriteFile(file, data[:len(data)/3], 0o600))
	killWorkers(t, s.cmd.Process.Pid)
	id = s.create(upload(clip(t, 8, 1.5), quick))
	answered := 0
	require.Eventually(t, func() bool {
		assert.NotEqual(t, "done", s.task(id)["status"])
		answered++
		return bytes.Count([]byte(s.logged()), []byte("worker process is replaced")) >= 3 || s.task(id)["status"] == "failed"
	}, patience, 100*time.Millisecond, "%s", s.logged())
	assert.Contains(t, s.logged()+fmt.Sprint(s.task(id)["error_message"]), "voice.onnx")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	change(t, s.store(), "UPDATE tasks SET run_at = 0 WHERE phase IN ('queued', 'delayed')")
	require.Equal(t, "done", s.wait(id)["status"], s.logged())
	exact(t, s.store())
	t.Logf("T8: the voice activity model was cut off under the service: %d requests answered meanwhile, the task done when the file was back", answered)
}
