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
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/otograph/otograph/internal/system/backoff"
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

// ReadFiles makes Handler include the metrics that other processes wrote to dir
// with WriteFiles, each with the label worker set to the file's name. Call it
// before Handler is used.
func (m *Metrics) ReadFiles(dir string) { m.registry.MustRegister(workerFiles(dir)) }

// workerFiles collects the recent files of a folder. It skips a file that can't
// be read and names it in the scrape's error.
type workerFiles string

// Describe describes nothing, because the metrics depend on the files.
func (workerFiles) Describe(chan<- *prometheus.Desc) {}

// Collect reads the files.
func (dir workerFiles) Collect(out chan<- prometheus.Metric) {
	files, err := filepath.Glob(filepath.Join(string(dir), "*"+metricsSuffix))
	if err != nil {
		out <- prometheus.NewInvalidMetric(unreadable, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || time.Since(info.ModTime()) > staleAfter {
			continue // removed meanwhile, or stale
		}
		if err := collectFile(file, out); err != nil {
			out <- prometheus.NewInvalidMetric(unreadable, fmt.Errorf("metrics of worker %s: %w", filepath.Base(file), err))
		}
	}
}

// unreadable stands for the metrics of a file that can't be read.
var unreadable = prometheus.NewDesc("otograph_worker_metrics", "Metrics of a worker.", nil, nil)

func collectFile(file string, out chan<- prometheus.Metric) error {
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
	worker := strings.TrimSuffix(filepath.Base(file), metricsSuffix)
	for name, family := range found {
		for _, m := range family.GetMetric() {
			labels, values := []string{"worker"}, []string{worker}
			for _, l := range m.GetLabel() {
				labels, values = append(labels, l.GetName()), append(values, l.GetValue())
			}
			var one prometheus.Metric
			desc := prometheus.NewDesc(name, family.GetHelp(), labels, nil)
			switch {
			case m.Counter != nil:
				one, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, m.Counter.GetValue(), values...)
			case m.Gauge != nil:
				one, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, m.Gauge.GetValue(), values...)
			case m.Histogram != nil:
				buckets := map[float64]uint64{}
				for _, b := range m.Histogram.GetBucket() {
					buckets[b.GetUpperBound()] = b.GetCumulativeCount()
				}
				one, err = prometheus.NewConstHistogram(desc, m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum(), buckets, values...)
			case m.Summary != nil:
				quantiles := map[float64]float64{}
				for _, q := range m.Summary.GetQuantile() {
					quantiles[q.GetQuantile()] = q.GetValue()
				}
				one, err = prometheus.NewConstSummary(desc, m.Summary.GetSampleCount(), m.Summary.GetSampleSum(), quantiles, values...)
			default:
				one, err = prometheus.NewConstMetric(desc, prometheus.UntypedValue, m.GetUntyped().GetValue(), values...)
			}
			if err != nil {
				return err
			}
			out <- one
		}
	}
	return nil
}
