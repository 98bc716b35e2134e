package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Workers are separate processes, which Prometheus does not scrape. Each writes
// its metrics to a file from time to time, and the server that started them
// exports them together with its own.

// staleAfter is the greatest age of a living worker's metrics file.
const staleAfter = 2 * time.Minute

const metricsSuffix = ".prom"

// WriteFiles writes the metrics of NewWorker to a file in dir (every, but at
// most half a minute apart) until ctx is done, and then removes it. It creates
// the folder, and only logs errors, which must not stop a worker.
func (m *Metrics) WriteFiles(ctx context.Context, dir string, every time.Duration, log *slog.Logger) {
	file := filepath.Join(dir, m.worker+metricsSuffix)
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

// ReadFiles lets Handler, called later, include the workers' metrics in dir.
func (m *Metrics) ReadFiles(dir string) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m.sources = append(m.sources, prometheus.GathererFunc(readRecent(dir, parser.TextToMetricFamilies)))
}

// readRecent returns a function that parses the recent files of a folder. It
// skips a file that can't be read and names it in the error.
func readRecent[F any](dir string, parse func(io.Reader) (map[string]F, error)) func() ([]F, error) {
	return func() (families []F, failed error) {
		files, err := filepath.Glob(filepath.Join(dir, "*"+metricsSuffix))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > staleAfter {
				continue // removed meanwhile, or stale
			}
			f, err := os.Open(file)
			if err != nil {
				continue // removed meanwhile
			}
			parsed, err := parse(f)
			f.Close()
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("metrics of worker %s: %w", filepath.Base(file), err))
				continue
			}
			families = slices.AppendSeq(families, maps.Values(parsed))
		}
		return families, failed
	}
}
