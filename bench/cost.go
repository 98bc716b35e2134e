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
	c.PeakRSS = peakRSS()
	if err != nil {
		return nil, c, err
	}
	c.Audio, c.Stages, c.Stats = res.AudioDuration, res.Stats.StageSeconds, res.Stats
	c.Stats.StageSeconds = nil // told already
	if len(res.VADSegments) == 0 {
		c.FirstSegment = 0
	}
	return res, c, nil
}

// stageCPU measures the processor seconds of each stage. Because stages overlap
// in a run, it runs them separately: first only transcription, then speakers
// based on the stored results of the first run, then only events. The processor
// time between the ends of two stages then belongs to the later one.
func stageCPU(ctx context.Context, p *otograph.Pipeline, src otograph.Source, opt otograph.Options) (map[otograph.Stage]float64, error) {
	e, err := opt.Effective()
	if err != nil {
		return nil, err
	}
	cost := map[otograph.Stage]float64{}
	kept := &keptStages{data: map[string][]byte{}}
	part := func(asr, diarize, events bool, stages ...otograph.Stage) error {
		o := opt
		o.EnableASR, o.EnableDiarize, o.EnableAudioEvents = &asr, &diarize, &events
		last := host.ProcessorSeconds()
		_, err := p.Run(ctx, src, o, otograph.RunOptions{Checkpoints: kept, Progress: func(r otograph.Progress) {
			if !r.Done {
				return
			}
			now, wanted := host.ProcessorSeconds(), slices.Contains(stages, r.Stage)
			if wanted {
				cost[r.Stage] += now - last
			}
			if wanted || r.Stage == otograph.StageDecode || r.Stage == otograph.StageVAD {
				last = now // the others read stored results, in parallel with the measured stages
			}
		}})
		return err
	}
	events := []otograph.Stage{otograph.StageEvents}
	if !*e.EnableASR {
		events = append(events, otograph.StageDecode)
	}
	if *e.EnableASR {
		err = part(true, false, false, otograph.StageDecode, otograph.StageVAD, otograph.StageLanguage, otograph.StageTranscribe)
	}
	if err == nil && *e.EnableDiarize {
		err = part(true, true, false, otograph.StageEmbed, otograph.StageDiarize)
	}
	if err == nil && *e.EnableAudioEvents {
		err = part(false, false, true, events...)
	}
	return cost, err
}

type keptStages struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (k *keptStages) Load(_ context.Context, stage string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data[stage], nil
}

func (k *keptStages) Save(_ context.Context, stage string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data[stage] = data
	return nil
}

// costSummary summarizes the costs of a system.
type costSummary struct {
	Audio  float64 `json:"audio_seconds"` // all recordings, each counted once
	RTFp50 float64 `json:"rtf_p50"`       // over recordings, each the median of its repeats
	RTFp95 float64 `json:"rtf_p95"`       // likewise
	// Speed is the seconds of audio per second, over all recordings.
	Speed           *estimate `json:"speed"`
	FirstSegmentP50 float64   `json:"first_segment_p50"`    // seconds, of the recordings with speech
	FirstSegmentP95 float64   `json:"first_segment_p95"`    // likewise
	CPUPerHour      float64   `json:"cpu_seconds_per_hour"` // processor seconds per hour of sound
	// StageCPUPerHour is by stage, from separate runs of the stages.
	StageCPUPerHour map[otograph.Stage]float64 `json:"stage_cpu_per_hour"`
	// PeakRSS is the process's peak, the largest of all recordings.
	PeakRSS        int64   `json:"peak_rss_bytes"`
	EncoderPerHour float64 `json:"encoder_passes_per_hour"` // counted
	WindowsPerHour float64 `json:"windows_per_hour"`        // counted
	// CascadeShare is the share of the speech that the standard tier decoded
	// again, in recordings with a cascade. CascadePerHour is the number of its
	// encoder passes per hour of them. Both are nil without a cascade.
	CascadeShare   *float64 `json:"cascade_share,omitempty"`
	CascadePerHour *float64 `json:"cascade_encoder_passes_per_hour,omitempty"`
}

// typical returns the repeat with the median wall time.
func typical(repeats []Cost) Cost {
	sorted := slices.SortedStableFunc(slices.Values(repeats), func(a, b Cost) int { return cmp.Compare(a.Wall, b.Wall) })
	return sorted[(len(sorted)-1)/2]
}

func summarizeCosts(items []itemReport, seed uint64) costSummary {
	var s costSummary
	var rtf, first []float64
	var speeds []ratio
	var cpu, staged float64
	var again spec.CascadeStats
	var cascaded float64
	for _, it := range items {
		c := it.Cost
		if c.Audio <= 0 || c.Wall <= 0 { // a result from a file
			continue
		}
		rtf = append(rtf, c.RTF())
		speeds = append(speeds, ratio{c.Audio, c.Wall})
		if c.FirstSegment > 0 {
			first = append(first, c.FirstSegment)
		}
		s.Audio += c.Audio
		cpu += c.CPU
		s.EncoderPerHour += float64(c.Stats.ASR.EncoderPasses)
		s.WindowsPerHour += float64(c.Stats.ASR.Windows)
		if a := c.Stats.Cascade; a.Segments > 0 {
			cascaded += c.Audio
			again.Add(a)
		}
		for _, r := range it.repeats {
			s.PeakRSS = max(s.PeakRSS, r.PeakRSS)
		}
		if it.StageCPU != nil {
			staged += c.Audio
			if s.StageCPUPerHour == nil {
				s.StageCPUPerHour = map[otograph.Stage]float64{}
			}
			for stage, seconds := range it.StageCPU {
				s.StageCPUPerHour[stage] += seconds
			}
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
	s.CPUPerHour, s.EncoderPerHour, s.WindowsPerHour = cpu*perHour, s.EncoderPerHour*perHour, s.WindowsPerHour*perHour
	for stage := range s.StageCPUPerHour {
		s.StageCPUPerHour[stage] *= 3600 / staged
	}
	s.Speed = estimateSum(speeds, seed, ratio.add, ratio.rate)
	return s
}
