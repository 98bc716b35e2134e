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

// Workers are processes of their own, which nobody scrapes. Each writes its
// metrics to a file from time to time, and the server that started them shows
// them beside its own, with the label worker.

// staleAfter is how old a worker's file may be: older ones are what a worker
// that died left behind.
const staleAfter = 2 * time.Minute

const metricsSuffix = ".prom"

// WriteFiles writes the metrics to dir/name.prom now and then (every, at most
// half a minute apart) until ctx is done, and removes the file then. The folder
// is created. Trouble is logged: it must not stop a worker.
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

// ReadFiles makes Handler show what processes wrote to dir with WriteFiles,
// each under the label worker with the file's name. Call it before Handler is
// used.
func (m *Metrics) ReadFiles(dir string) {
	all := prometheus.Gatherers{m.registry, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return readMetrics(dir) })}
	m.handler = promhttp.HandlerFor(all, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
}

// readMetrics reads the files that are fresh. A file that can't be read is
// passed over and named in the error.
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
			continue // gone, or left behind
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
