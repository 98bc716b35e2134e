package bench

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/spec"
)

func measure(ctx context.Context, p *otograph.Pipeline, src otograph.Source, opt otograph.Options) (*otograph.Result, Cost, error) {
	resetPeak()
	var c Cost
	start, cpu := time.Now(), host.ProcessorSeconds()
	var once sync.Once
	res, err := p.Run(ctx, src, opt, otograph.RunOptions{Progress: func(r otograph.Progress) {
		if r.Stage == otograph.StageTranscribe {
			once.Do(func() { c.FirstSegment = time.Since(start).Seconds() })
		}
	}})
	c.Wall, c.CPU = time.Since(start).Seconds(), host.ProcessorSeconds()-cpu
	c.PeakRSS = host.PeakMemory("self") // since resetPeak
	if err != nil {
		return nil, c, err
	}
	c.Audio, c.Stats = res.AudioDuration, res.Stats
	if len(res.VADSegments) == 0 {
		c.FirstSegment = 0
	}
	return res, c, nil
}

type costSummary struct {
	Audio  float64 `json:"audio_seconds"` // all recordings, each counted once
	RTFp50 float64 `json:"rtf_p50"`       // over recordings, by the median of each one's repeats
	RTFp95 float64 `json:"rtf_p95"`       // likewise
	// Speed is the seconds of audio per second, over all recordings.
	Speed           *estimate `json:"speed"`
	FirstSegmentP50 float64   `json:"first_segment_p50"`    // seconds, of the recordings with speech
	FirstSegmentP95 float64   `json:"first_segment_p95"`    // likewise
	CPUPerHour      float64   `json:"cpu_seconds_per_hour"` // processor seconds per hour of sound
	// PeakRSS is the process's peak, the largest of all recordings.
	PeakRSS        int64   `json:"peak_rss_bytes"`
	EncoderPerHour float64 `json:"encoder_passes_per_hour"` // counted
	// CascadeShare is the share of the speech that the standard tier decoded
	// again, in recordings with a cascade. CascadePerHour is the number of the
	// cascade's encoder passes per hour of these recordings. Both are nil
	// without a cascade.
	CascadeShare   *float64 `json:"cascade_share,omitempty"`
	CascadePerHour *float64 `json:"cascade_encoder_passes_per_hour,omitempty"`
}

// ratio is a quotient of two sums, such as sound by processing time.
type ratio struct{ part, whole float64 }

func (r ratio) add(o ratio) ratio { return ratio{r.part + o.part, r.whole + o.whole} }

func (r ratio) rate() float64 { return r.part / max(r.whole, 1e-9) }

// typical returns the repeat with the median wall time.
func typical(repeats []Cost) Cost {
	sorted := slices.SortedStableFunc(slices.Values(repeats), func(a, b Cost) int { return cmp.Compare(a.Wall, b.Wall) })
	return sorted[(len(sorted)-1)/2]
}

func summarizeCosts(items []itemReport, seed uint64) costSummary {
	var s costSummary
	var rtf, first []float64
	var speeds []ratio
	var cpu float64
	var again spec.CascadeStats
	var cascaded float64
	for _, it := range items {
		c := it.Cost
		if c.Audio <= 0 || c.Wall <= 0 { // a result from a file
			continue
		}
		rtf = append(rtf, c.Wall/c.Audio)
		speeds = append(speeds, ratio{c.Audio, c.Wall})
		if c.FirstSegment > 0 {
			first = append(first, c.FirstSegment)
		}
		s.Audio += c.Audio
		cpu += c.CPU
		s.EncoderPerHour += float64(c.Stats.ASR.EncoderPasses)
		if a := c.Stats.Cascade; a.Segments > 0 {
			cascaded += c.Audio
			again.Add(a)
		}
		for _, r := range it.repeats {
			s.PeakRSS = max(s.PeakRSS, r.PeakRSS)
		}
	}
	if len(rtf) == 0 {
		return s
	}
	s.RTFp50, s.RTFp95 = median(rtf), percentileOf(rtf, 95)
	if len(first) > 0 {
		s.FirstSegmentP50, s.FirstSegmentP95 = median(first), percentileOf(first, 95)
	}
	perHour := 3600 / s.Audio
	if cascaded > 0 {
		s.CascadeShare, s.CascadePerHour = new(again.Share()), new(float64(again.ASR.EncoderPasses)*3600/cascaded)
	}
	s.CPUPerHour, s.EncoderPerHour = cpu*perHour, s.EncoderPerHour*perHour
	s.Speed = estimateSum(speeds, seed, ratio.add, ratio.rate)
	return s
}

// netSpeed returns the seconds of sound per second, without the time in which a
// program starts for each recording; 0 if that is unknown.
func (s systemReport) netSpeed() float64 {
	if wall := s.net(func(c Cost) float64 { return c.Wall }); wall > 0 {
		return s.Cost.Audio / wall
	}
	return 0
}

// netCPU returns the seconds of processor time per hour of sound, without the
// time in which a program starts for each recording; 0 if that is unknown.
func (s systemReport) netCPU() float64 {
	return 3600 * s.net(func(c Cost) float64 { return c.CPU }) / max(1e-9, s.Cost.Audio)
}

// net sums a cost over the recordings, without that of starting a program.
func (s systemReport) net(of func(Cost) float64) (sum float64) {
	for _, it := range s.Items {
		if it.Cost.Audio <= 0 || it.Cost.Wall <= 0 {
			continue
		}
		cost := of(it.Cost)
		if s.Start != nil {
			cost = max(0, cost-of(*s.Start))
		}
		sum += cost
	}
	return sum
}
