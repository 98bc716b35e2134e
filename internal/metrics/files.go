package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/otograph/otograph/internal/backoff"
)

// Workers are separate processes, which Prometheus does not scrape. Each writes
// its metrics to a file from time to time, and the server that started them
// exports them together with its own, with the label worker.

// staleAfter is the maximum age of a worker's file; older ones were left by a
// worker that died.
const staleAfter = 2 * time.Minute

const metricsSuffix = ".prom"

// WriteFiles writes the metrics to dir/name.prom periodically (every, but at
// most half a minute apart) until ctx is done, and then removes the file. It
// creates the folder. It only logs errors, because they must not stop a worker.
func (m *Metrics) WriteFiles(ctx context.Context, dir, name string, every time.Duration, log *slog.Logger) {
	file := filepath.Join(dir, name+metricsSuffix)
	defer os.Remove(file)
	write := func() error {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = prometheus.WriteToTextfile(file, m.registry)
		}
		if err != nil {
			log.WarnContext(ctx, "metrics not written", "file", file, "error", err)
		}
		return nil
	}
	_ = write()
	_ = backoff.Every(ctx, min(max(every, 10*time.Millisecond), staleAfter/4), write)
}

// ReadFiles makes Handler include what other processes wrote to dir with
// WriteFiles, each under the label worker with the file's name. Call it before
// Handler is used.
func (m *Metrics) ReadFiles(dir string) {
	all := prometheus.Gatherers{m.registry, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return readMetrics(dir) })}
	m.handler = promhttp.HandlerFor(all, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
}

// readMetrics reads the recent files. It skips a file that can't be read and
// names it in the error.
func readMetrics(dir string) ([]*dto.MetricFamily, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+metricsSuffix))
	if err != nil {
		return nil, err
	}
	families := map[string]*dto.MetricFamily{}
	var broken []string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || time.Since(info.ModTime()) > staleAfter {
			continue // removed meanwhile, or stale
		}
		if err := readMetricsFile(file, families); err != nil {
			broken = append(broken, fmt.Sprintf("%s: %v", filepath.Base(file), err))
		}
	}
	out := make([]*dto.MetricFamily, 0, len(families))
	for _, f := range families {
		out = append(out, f)
	}
	if broken != nil {
		return out, fmt.Errorf("metrics of workers: %s", strings.Join(broken, "; "))
	}
	return out, nil
}

func readMetricsFile(file string, into map[string]*dto.MetricFamily) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(f)
	if err != nil {
		return err
	}
	label, worker := "worker", strings.TrimSuffix(filepath.Base(file), metricsSuffix)
	for name, family := range found {
		for _, metric := range family.Metric {
			metric.Label = append(metric.Label, &dto.LabelPair{Name: &label, Value: &worker})
		}
		if have := into[name]; have == nil {
			into[name] = family
		} else if have.GetType() == family.GetType() {
			have.Metric = append(have.Metric, family.Metric...)
		}
	}
	return nil
}
