package metrics

import (
	"context"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Names returns the names of the metrics that may appear, sorted, without those
// that are computed at a scrape.
func (m *Metrics) Names() []string { return slices.Sorted(maps.Keys(m.help)) }

// Handler returns the handler of scrapes.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, merged(append(m.recent(), m.text())...))
	})
}

var (
	labeled   = regexp.MustCompile(`(?m)^(\w+)\{(.*)\} `)
	unlabeled = regexp.MustCompile(`(?m)^(\w+) `)
)

// text returns the metrics of this process in Prometheus' text format.
func (m *Metrics) text() string {
	var b strings.Builder
	m.set.WritePrometheus(&b)
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	now := &Metrics{set: metrics.NewSet(), help: maps.Clone(m.help)}
	for _, s := range m.scraped {
		s(ctx, now)
	}
	now.set.WritePrometheus(&b)
	var help []string
	for name, text := range now.help {
		help = append(help, "# HELP "+name+"\n", "# HELP "+name+" "+text+"\n")
	}
	text := strings.NewReplacer(help...).Replace(b.String())
	if m.worker != "" {
		text = labeled.ReplaceAllString(text, `$1{$2,worker="`+m.worker+`"} `)
		text = unlabeled.ReplaceAllString(text, `$1{worker="`+m.worker+`"} `)
	}
	return text
}

// merged joins texts: all samples of a metric follow its help and its type.
func merged(texts ...string) string {
	lines := map[string][]string{} // by the metric's name
	for _, text := range texts {
		name := ""
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "#" {
				if name = words[2]; slices.Contains(lines[name], line) {
					continue
				}
			}
			lines[name] = append(lines[name], line)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(strings.Join(lines[name], ""))
	}
	return b.String()
}
