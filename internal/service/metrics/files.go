package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otograph/otograph/internal/system/backoff"
)

// Prometheus does not scrape workers, separate processes. Each writes its metrics
// to a file from time to time, and the server exports them with its own.

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
		err := cmp.Or(os.MkdirAll(dir, 0o700), os.WriteFile(file+".new", []byte(m.text()), 0o644))
		if err == nil {
			err = os.Rename(file+".new", file) // readers see all or nothing
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
func (m *Metrics) ReadFiles(dir string) { m.files = dir }

// recent returns the texts of the files that living workers have written.
func (m *Metrics) recent() (texts []string) {
	if m.files == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(m.files, "*"+metricsSuffix))
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > staleAfter {
			continue // removed meanwhile, or stale
		}
		if text, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), "# ") {
			texts = append(texts, string(text))
		}
	}
	return texts
}
