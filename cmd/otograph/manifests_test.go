package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// container is a container of a manifest or of the compose file.
type container struct {
	Name  string
	Image string
	Args  []string
	Env   []struct{ Name, Value string }
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe    probe `yaml:"startupProbe"`
	LivenessProbe   probe `yaml:"livenessProbe"`
	ReadinessProbe  probe `yaml:"readinessProbe"`
	SecurityContext struct {
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// manifest has the fields of a Deployment or Job that tests read.
type manifest struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				SecurityContext               struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []map[string]any
			}
		}
	}
}

// starts checks that the program accepts a command line with its environment,
// and returns the value of --grace and --drain-delay together.
func starts(t *testing.T, args []string, env map[string]string) (drain time.Duration) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var out bytes.Buffer
	parser := newParser(t.Context(), true)
	parser.Stdout, parser.Stderr, parser.Exit = &out, &out, func(int) {}
	parsed, err := parser.Parse(args)
	require.NoError(t, err, "%s", strings.Join(args, " "))
	known := map[string]bool{"AWS_ACCESS_KEY_ID": true, "AWS_SECRET_ACCESS_KEY": true}
	for _, flag := range parsed.Flags() {
		for _, name := range flag.Envs {
			known[name] = true
		}
		if d, ok := flag.Target.Interface().(time.Duration); ok && slices.Contains([]string{"grace", "drain-delay"}, flag.Name) {
			drain += d
		}
	}
	for name := range env {
		assert.True(t, known[name], "%s: %s reads no %s", args[0], args[0], name)
	}
	return drain
}

// TestManifestsStart: the program accepts the arguments and environment of each
// container of deploy/kubernetes, which has the image's user, a read-only root,
// no privileges, probes at addresses that are served, and more time to stop
// than the program takes.
func TestManifestsStart(t *testing.T) {
	paths, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	environment := map[string]string{"OTOGRAPH_DATABASE": "postgres://otograph@db/otograph", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
	settings, err := os.ReadFile("../../deploy/kubernetes/kustomization.yaml")
	require.NoError(t, err)
	for line := range strings.Lines(string(settings)) {
		if name, value, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "-")), "="); found && strings.HasPrefix(name, "OTOGRAPH_") {
			environment[name] = value
		}
	}
	require.Contains(t, environment, "OTOGRAPH_BLOBS")
	var commands []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var m manifest
			err := decoder.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, path)
			pod := m.Spec.Template.Spec
			for _, values := range pod.Containers {
				var c container
				again, err := yaml.Marshal(values)
				require.NoError(t, err)
				require.NoError(t, yaml.Unmarshal(again, &c))
				commands = append(commands, c.Args[0])
				env := map[string]string{}
				for name, value := range environment {
					env[name] = value
				}
				for _, e := range c.Env {
					env[e.Name] = e.Value
				}
				if c.Args[0] == "migrate" { // it needs the database alone, and is given all settings
					delete(env, "OTOGRAPH_MODELS")
				}
				drain := starts(t, c.Args, env)
				if m.Kind == "Deployment" {
					assert.Greater(t, pod.TerminationGracePeriodSeconds, int(drain.Seconds())+15, "%s: a window of a stage takes seconds", path)
				}
				assert.True(t, pod.SecurityContext.RunAsNonRoot && pod.SecurityContext.RunAsUser == 10001 && c.SecurityContext.ReadOnlyRootFilesystem, path)
				assert.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop, path)
				assert.Equal(t, new(false), c.SecurityContext.AllowPrivilegeEscalation, path)
				probed(t, path, c)
			}
		}
	}
	assert.ElementsMatch(t, []string{"migrate", "serve", "work"}, commands)
}

// probed checks that a server's probes ask the address of --ops-addr.
func probed(t *testing.T, path string, c container) {
	t.Helper()
	probes := map[string]probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe}
	if c.Args[0] != "serve" {
		assert.Zero(t, probes["/healthz"], "%s: there is nothing to ask", path)
		return
	}
	assert.Equal(t, c.LivenessProbe, c.StartupProbe)
	i := slices.Index(c.Args, "--ops-addr")
	require.Positive(t, i, path)
	for want, p := range probes {
		assert.Equal(t, want, p.HTTPGet.Path, path)
		for _, port := range c.Ports {
			if port.Name == p.HTTPGet.Port {
				assert.True(t, strings.HasSuffix(c.Args[i+1], ":"+strconv.Itoa(port.ContainerPort)), path)
			}
		}
	}
}

// TestComposeStarts: the program accepts the arguments and environment of the
// compose file's services.
func TestComposeStarts(t *testing.T) {
	text, err := os.ReadFile("../../deploy/compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]string
			ReadOnly    bool          `yaml:"read_only"`
			Stop        time.Duration `yaml:"stop_grace_period"`
		}
		Volumes map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	started := 0
	for name, s := range compose.Services {
		if s.Image != "otograph" {
			continue
		}
		assert.True(t, s.ReadOnly, name)
		assert.Greater(t, s.Stop, starts(t, s.Command, s.Environment)+15*time.Second, name)
		started++
	}
	assert.Equal(t, 2, started)
}
