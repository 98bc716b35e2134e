package stages

import (
	"maps"
	"sync"
	"time"

	"github.com/otograph/otograph/spec"
)

// weights are the stages' shares of a run's cost with a base-size model and
// published models for the voices, on a call of 4:37.
var weights = map[spec.Stage]float64{
	spec.StageDecode: 2, spec.StageVAD: 1, spec.StageLanguage: 5, spec.StageTranscribe: 50, spec.StageEmbed: 33, spec.StageEvents: 4, spec.StageDiarize: 8,
}

// optimizedWeight is the weight of StageTranscribe in the optimized tier.
const optimizedWeight = 20

// Progress turns the stages' reports into one rising fraction.
type Progress struct {
	// Report, if not nil, receives the reports, never concurrently.
	Report func(spec.Progress)

	mu      sync.Mutex
	weight  map[spec.Stage]float64
	done    map[spec.Stage]float64 // 0 to 1
	seconds map[spec.Stage]float64 // wall time
	length  float64                // seconds of audio
	reached float64
}

// Plan sets the stages that a run has.
func (p *Progress) Plan(opt spec.EffectiveOptions) {
	p.weight = maps.Clone(weights)
	p.done, p.seconds = map[spec.Stage]float64{}, map[spec.Stage]float64{}
	if !*opt.EnableASR {
		delete(p.weight, spec.StageVAD)
		delete(p.weight, spec.StageLanguage)
		delete(p.weight, spec.StageTranscribe)
	}
	if !*opt.EnableDiarize {
		delete(p.weight, spec.StageEmbed)
		delete(p.weight, spec.StageDiarize)
	}
	if !*opt.EnableAudioEvents {
		delete(p.weight, spec.StageEvents)
	}
}

// Duration sets the length of the recording in seconds.
func (p *Progress) Duration(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.length = seconds
}

// Tier corrects the plan once it is known which recognizer runs.
func (p *Progress) Tier(t spec.Tier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == spec.TierOptimized {
		p.weight[spec.StageTranscribe] = optimizedWeight
	}
}

// Part reports that a stage has completed done of total.
func (p *Progress) Part(s spec.Stage, done, total float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > 0 {
		p.done[s] = max(p.done[s], min(1, done/total))
	}
	p.send(s, false)
}

// Ended reports the end of a stage and records its duration.
func (p *Progress) Ended(s spec.Stage, took time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seconds[s] = took.Seconds()
	if ok {
		p.done[s] = 1
		p.send(s, true)
	}
}

func (p *Progress) send(s spec.Stage, done bool) {
	var all, have float64
	for stage, w := range p.weight {
		all += w
		have += w * p.done[stage]
	}
	if all > 0 {
		p.reached = max(p.reached, min(1, have/all))
	}
	if p.Report != nil {
		p.Report(spec.Progress{Stage: s, Fraction: p.reached, Done: done, AudioDuration: p.length})
	}
}

// Seconds returns the duration of each stage that has ended.
func (p *Progress) Seconds() map[spec.Stage]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seconds)
}
