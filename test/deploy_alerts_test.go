package test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otograph/otograph/internal/service/metrics"
	"github.com/otograph/otograph/internal/service/tasks"
)

// registered returns the names of the metrics of a server.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	m := metrics.New(func(context.Context) (tasks.Stats, error) {
		return tasks.Stats{
			TasksByFinalState: map[tasks.Status]int{tasks.StatusDone: 1}, ChoresDone: map[string]time.Time{"cleanup": time.Now()}, PausedLanes: map[string]bool{"tasks": false},
		}, nil
	})
	m.Build("test")
	m.Workers(func() int { return 0 })
	m.Restarts(func() int { return 0 })
	m.RefusedConnections()
	m.Live()
	scraped := httptest.NewRecorder()
	m.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	names := map[string]bool{}
	for _, name := range m.Names() { // metrics appear with their first value
		names[name] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(scraped.Body.String(), -1) {
		names[found[1]] = true
	}
	require.True(t, names["otograph_queue_waiting"])
	return names
}

var (
	metricName = regexp.MustCompile(`\b(?:otograph|process|go)_[a-z0-9_]+`)
	suffix     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// assertMetrics checks that an expression contains metrics, and only existing
// ones.
func assertMetrics(t *testing.T, existing map[string]bool, what, expr string) {
	t.Helper()
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 {
		assert.Contains(t, expr, "up{", what)
	}
	for _, name := range names {
		assert.True(t, existing[name] || existing[suffix.ReplaceAllString(name, "")], "%s names %s, which is no metric", what, name)
	}
}

// alert is a rule of rules.yml.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	text, err := os.ReadFile("../deploy/prometheus/rules.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, g := range file.Groups {
		alerts = append(alerts, g.Rules...)
	}
	require.NotEmpty(t, alerts)
	return alerts
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	existing := registered(t)
	page, err := os.ReadFile("../docs/alerts.md")
	require.NoError(t, err)
	tests, err := os.ReadFile("../deploy/prometheus/rules_test.yml")
	require.NoError(t, err)
	alerts := readAlerts(t)
	for _, a := range alerts {
		assertMetrics(t, existing, a.Alert, a.Expr)
		assert.Contains(t, []string{"warning", "critical"}, a.Labels["severity"], a.Alert)
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.Contains(t, string(page), "| `"+a.Alert+"` | "+a.Labels["severity"]+" |", "docs/alerts.md says what to do")
		assert.Equal(t, 2, strings.Count(string(tests), "alertname: "+a.Alert), "rules_test.yml shows when %s fires and when it does not", a.Alert)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Otograph[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		found := false
		for _, a := range alerts {
			found = found || a.Alert == row[1]
		}
		assert.True(t, found, "docs/alerts.md describes %s, which is not an alert", row[1])
	}
}

// dashboardQueries returns the expressions of the dashboard by the panel's
// title.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../deploy/prometheus/dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &board))
	queries := map[string][]string{}
	for _, p := range board.Panels {
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], target.Expr)
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	existing := registered(t)
	for title, queries := range dashboardQueries(t) {
		for _, q := range queries {
			assertMetrics(t, existing, title, q)
		}
	}
}

// TestPromtoolAcceptsRulesAndQueries checks and runs the rules, and checks the
// dashboard's queries as if they were rules.
func TestPromtoolAcceptsRulesAndQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for _, queries := range dashboardQueries(t) {
		for _, q := range queries {
			records = append(records, record{"dashboard", q})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	require.NoError(t, err)
	board := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(board, text, 0o600))
	for _, args := range [][]string{{"check", "rules", "../deploy/prometheus/rules.yml"}, {"test", "rules", "../deploy/prometheus/rules_test.yml"}, {"check", "rules", "--lint=none", board}} {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		assert.NoError(t, err, "promtool %v: %s", args, out)
	}
}

// TestScaleQuery checks the metrics of the query by which KEDA scales workers.
func TestScaleQuery(t *testing.T) {
	text, err := os.ReadFile("../deploy/kubernetes/keda/scaledobject.yaml")
	require.NoError(t, err)
	query := regexp.MustCompile(`query: (.*)`).FindSubmatch(text)
	require.Len(t, query, 2)
	assertMetrics(t, registered(t), "scaledobject.yaml", string(query[1]))
}
