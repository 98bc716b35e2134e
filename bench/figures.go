package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otograph/otograph/bench/internal/scores"
)

// figure is a row of every rendering: name, unit, each system's value.
type figure struct {
	key, name, unit string
	of              func(systemReport) *estimate // nil if the system has no such figure
	format          string                       // of the value, after scale
	scale           float64
}

func plain(v float64) *estimate { return &estimate{Value: v, Low: v, High: v} }

func plainIf(on bool, v float64) *estimate {
	if !on {
		return nil
	}
	return plain(v)
}

// figures returns all figures of a report, in display order.
func figures() []figure { return append(accuracyFigures(), costFigures()...) }

func accuracyFigures() []figure {
	list := []figure{
		{"wer", "word error rate", "%", func(s systemReport) *estimate { return s.Accuracy.WordRate }, "%.2f", 100},
		{"wer_all", "· with recordings without speech", "%", func(s systemReport) *estimate { return s.Accuracy.WordRateAll }, "%.2f", 100},
		{"wer_verbatim", "· verbatim, with case and punctuation", "%", func(s systemReport) *estimate { return s.Accuracy.Verbatim }, "%.2f", 100},
		{"cer", "character error rate", "%", func(s systemReport) *estimate { return s.Accuracy.CharRate }, "%.2f", 100},
		{"cer_all", "· with recordings without speech", "%", func(s systemReport) *estimate { return s.Accuracy.CharRateAll }, "%.2f", 100},
		{"substitutions", "· substitutions", "", count(func(w WordErrors) int { return w.Substitutions }), "%.0f", 1},
		{"deletions", "· deletions", "", count(func(w WordErrors) int { return w.Deletions }), "%.0f", 1},
		{"insertions", "· insertions", "", count(func(w WordErrors) int { return w.Insertions }), "%.0f", 1},
		{"reference_units", "· words and characters in the reference", "", count(func(w WordErrors) int { return w.Reference }), "%.0f", 1},
		{"invented", "texts where there is no speech", "%", func(s systemReport) *estimate { return s.Accuracy.Invented }, "%.1f", 100},
		{"language", "right language", "%", func(s systemReport) *estimate { return s.Accuracy.Language }, "%.1f", 100},
		{"der", "diarization error rate", "%", func(s systemReport) *estimate { return s.Accuracy.TurnRate }, "%.2f", 100},
		{"der_missed", "· missed", "%", turn(func(d DER) float64 { return d.Missed }), "%.2f", 100},
		{"der_false_alarm", "· false alarm", "%", turn(func(d DER) float64 { return d.FalseAlarm }), "%.2f", 100},
		{"der_confusion", "· confusion", "%", turn(func(d DER) float64 { return d.Confusion }), "%.2f", 100},
		{"jer", "Jaccard error rate", "%", func(s systemReport) *estimate {
			d := s.Accuracy.Turns
			if d == nil || d.Speakers == 0 {
				return nil
			}
			return plain(d.jer())
		}, "%.2f", 100},
		{"speakers", "correct number of speakers", "%", func(s systemReport) *estimate { return s.Accuracy.Speakers }, "%.1f", 100},
		{"speakers_expected", "· as expected by the stated probabilities", "%", func(s systemReport) *estimate { return s.Accuracy.SpeakersExpected }, "%.1f", 100},
		{"speakers_sure", "· where at least 80 % is stated", "%", func(s systemReport) *estimate { return s.Accuracy.SpeakersSure }, "%.1f", 100},
		{"event_f1", "events F1, by the second", "%", func(s systemReport) *estimate { return s.Accuracy.EventF1 }, "%.1f", 100},
		{"event_precision", "· precision", "%", func(s systemReport) *estimate { return plainOf(s.Accuracy.Precision) }, "%.1f", 100},
		{"event_recall", "· recall", "%", func(s systemReport) *estimate { return plainOf(s.Accuracy.Recall) }, "%.1f", 100},
	}
	list = slices.Insert(list, slices.IndexFunc(list, func(f figure) bool { return f.key == "speakers" }), speakerFigures()...)
	for _, t := range []struct {
		key, name string
		of        func(accuracy) *timeSummary
	}{
		{"sentence", "sentence", func(a accuracy) *timeSummary { return a.Sentences }},
		{"word", "word", func(a accuracy) *timeSummary { return a.WordTimes }},
	} {
		stat := func(f func(timeSummary) float64) func(systemReport) *estimate {
			return func(s systemReport) *estimate {
				v := cmp.Or(t.of(s.Accuracy), &timeSummary{})
				return plainIf(v.Matched > 0, f(*v))
			}
		}
		list = append(list,
			figure{t.key + "_start_mean", t.name + " start off, mean", "s", stat(func(s timeSummary) float64 { return s.MeanStart }), "%.3f", 1},
			figure{t.key + "_start_50ms", "· within 50 ms", "%", stat(func(s timeSummary) float64 { return s.Within50 }), "%.1f", 100},
			figure{t.key + "_start_100ms", "· within 100 ms", "%", stat(func(s timeSummary) float64 { return s.Within100 }), "%.1f", 100},
			figure{t.key + "_start_200ms", "· within 200 ms", "%", stat(func(s timeSummary) float64 { return s.Within200 }), "%.1f", 100},
			figure{t.key + "_start_p50", "· median", "s", stat(func(s timeSummary) float64 { return s.MedianStart }), "%.3f", 1},
			figure{t.key + "_start_p95", "· 95th percentile", "s", stat(func(s timeSummary) float64 { return s.P95Start }), "%.3f", 1},
			figure{t.key + "_end_p50", t.name + " end off, median", "s", stat(func(s timeSummary) float64 { return s.MedianEnd }), "%.3f", 1},
			figure{t.key + "_end_p95", "· 95th percentile", "s", stat(func(s timeSummary) float64 { return s.P95End }), "%.3f", 1},
			figure{t.key + "_matched", "· of all " + t.name + "s matched", "%", derived(t.of, func(s timeSummary) float64 { return s.Matched }), "%.1f", 100},
		)
	}
	return list
}

func costFigures() []figure {
	ran := func(f func(costSummary) float64) func(systemReport) *estimate {
		return func(s systemReport) *estimate {
			return plainIf(s.Cost.Audio > 0 && (!s.Other || f(s.Cost) > 0), f(s.Cost)) // some costs of other systems are unknown
		}
	}
	return []figure{
		{"speed", "speed", "× real time", func(s systemReport) *estimate { return s.Cost.Speed }, "%.1f", 1},
		{"speed_without_starts", "· without starts", "× real time", started(systemReport.netSpeed), "%.1f", 1},
		{"rtf_p50", "real-time factor, median", "", ran(func(c costSummary) float64 { return c.RTFp50 }), "%.4f", 1},
		{"rtf_p95", "· 95th percentile", "", ran(func(c costSummary) float64 { return c.RTFp95 }), "%.4f", 1},
		{"first_p50", "time to the first segment, median", "s", ran(func(c costSummary) float64 { return c.FirstSegmentP50 }), "%.2f", 1},
		{"first_p95", "· 95th percentile", "s", ran(func(c costSummary) float64 { return c.FirstSegmentP95 }), "%.2f", 1},
		{"cpu_per_hour", "processor time for an hour", "s", ran(func(c costSummary) float64 { return c.CPUPerHour }), "%.1f", 1},
		{"cpu_without_starts_per_hour", "· without starts", "s", started(systemReport.netCPU), "%.1f", 1},
		{"encoder_passes_per_hour", "encoder passes for an hour", "", ran(func(c costSummary) float64 { return c.EncoderPerHour }), "%.0f", 1},
		{"cascade_share", "speech decoded again by the standard tier", "%", func(s systemReport) *estimate { return plainOf(s.Cost.CascadeShare) }, "%.1f", 100},
		{"cascade_encoder_passes_per_hour", "· encoder passes for an hour", "", func(s systemReport) *estimate { return plainOf(s.Cost.CascadePerHour) }, "%.0f", 1},
		{"peak_rss", "peak memory of the process", "MiB", ran(func(c costSummary) float64 { return float64(c.PeakRSS) }), "%.0f", 1.0 / (1 << 20)},
		{"load", "time to load the models", "s", func(s systemReport) *estimate { return plainIf(s.Load > 0, s.Load) }, "%.2f", 1},
		{"start", "time to start for each recording", "s", started(func(s systemReport) float64 { return s.Start.Wall }), "%.2f", 1},
		{"recordings", "recordings measured", "", func(s systemReport) *estimate { return plain(float64(len(s.Items) - s.Failed)) }, "%.0f", 1},
		{"failed", "recordings failed", "", func(s systemReport) *estimate { return plainIf(s.Failed > 0, float64(s.Failed)) }, "%.0f", 1},
	}
}

// started returns a figure of the programs that are started for each recording.
func started(of func(systemReport) float64) func(systemReport) *estimate {
	return func(s systemReport) *estimate {
		if s.Start == nil || s.Cost.Audio == 0 {
			return nil
		}
		return plain(of(s))
	}
}

// speakerFigures returns figures of turns, speakers' words, and keywords.
func speakerFigures() (list []figure) {
	for _, rate := range []struct{ key, name string }{{"der_", "· DER, "}, {"jer_", "· JER, "}} {
		for _, v := range turnVariants {
			list = append(list, figure{rate.key + v.key, rate.name + v.name, "%", func(s systemReport) *estimate { return s.Accuracy.TurnRates[rate.key+v.key] }, "%.2f", 100})
		}
	}
	for _, r := range meetingRates {
		list = append(list, figure{r.key, r.name, "%", func(s systemReport) *estimate { return s.Accuracy.Meeting[r.key] }, "%.2f", 100})
	}
	keyword := func(f func(scores.Counts) float64) func(systemReport) *estimate {
		return derived(func(a accuracy) *scores.Counts { return a.Keywords }, f)
	}
	return append(list,
		figure{"keyword_f1", "keywords F1", "%", func(s systemReport) *estimate { return s.Accuracy.KeywordF1 }, "%.1f", 100},
		figure{"keyword_precision", "· precision", "%", keyword(scores.Counts.Precision), "%.1f", 100},
		figure{"keyword_recall", "· recall", "%", keyword(scores.Counts.Recall), "%.1f", 100},
	)
}

// derived returns a figure that f computes from a part of the accuracy.
func derived[T any](part func(accuracy) *T, f func(T) float64) func(systemReport) *estimate {
	return func(s systemReport) *estimate {
		if v := part(s.Accuracy); v != nil {
			return plain(f(*v))
		}
		return nil
	}
}

func count(f func(WordErrors) int) func(systemReport) *estimate {
	return func(s systemReport) *estimate {
		if w := s.Accuracy.Words; w != (WordErrors{}) {
			return plain(float64(f(w)))
		}
		return nil
	}
}

func turn(f func(DER) float64) func(systemReport) *estimate {
	return func(s systemReport) *estimate {
		if d := s.Accuracy.Turns; d != nil && d.Scored > 0 {
			return plain(f(*d) / d.Scored)
		}
		return nil
	}
}

// show formats a value, with its interval if that is informative.
func (f figure) show(e *estimate) string {
	if e == nil || math.IsNaN(e.Value) {
		return "–"
	}
	out := fmt.Sprintf(f.format, e.Value*f.scale)
	if e.High > e.Low {
		out += fmt.Sprintf(" ("+f.format+" – "+f.format+")", e.Low*f.scale, e.High*f.scale)
	}
	return out
}

func (f figure) label() string {
	if f.unit == "" {
		return f.name
	}
	return f.name + ", " + f.unit
}

// String describes the machine on one line.
func (m Machine) String() string {
	parts := []string{fmt.Sprintf("%d × %s", m.Cores, m.CPU)}
	if len(m.Features) > 0 {
		parts = append(parts, strings.Join(m.Features, " "))
	}
	if m.MemoryMiB > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GiB", float64(m.MemoryMiB)/1024))
	}
	parts = append(parts, m.OS+" "+m.Kernel, m.Go)
	if m.LoadAverage[0] != "" {
		parts = append(parts, "load average "+m.LoadAverage[0]+" at the start")
	}
	return strings.Join(parts, ", ")
}

// plainOf is like plain for a value that may be missing.
func plainOf(v *float64) *estimate {
	if v == nil {
		return nil
	}
	return plain(*v)
}
