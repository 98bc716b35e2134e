package otograph

import (
	"maps"
	"sync"
	"time"
)

// weights are the stages' shares of a run's cost, measured roughly with a
// base-size model; they only have to make the bar move evenly.
var weights = map[Stage]float64{
	StageDecode: 3, StageVAD: 3, StageLanguage: 5, StageTranscribe: 75, StageEmbed: 6, StageEvents: 6, StageDiarize: 2,
}

// optimizedWeight is StageTranscribe's share in the optimized tier.
const optimizedWeight = 8

// progress turns the stages' reports into one rising fraction.
type progress struct {
	report func(Progress)

	mu      sync.Mutex
	weight  map[Stage]float64
	done    map[Stage]float64 // 0 to 1
	seconds map[Stage]float64 // wall time
	length  float64           // seconds of audio
	reached float64
}

// plan sets the stages that a run has.
func (p *progress) plan(opt EffectiveOptions) {
	p.weight = maps.Clone(weights)
	p.done, p.seconds = map[Stage]float64{}, map[Stage]float64{}
	if !*opt.EnableASR {
		delete(p.weight, StageVAD)
		delete(p.weight, StageLanguage)
		delete(p.weight, StageTranscribe)
	}
	if !*opt.EnableDiarize {
		delete(p.weight, StageEmbed)
		delete(p.weight, StageDiarize)
	}
	if !*opt.EnableAudioEvents {
		delete(p.weight, StageEvents)
	}
}

func (p *progress) duration(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.length = seconds
}

// tier corrects the plan once it is known which recognizer runs.
func (p *progress) tier(t Tier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t == TierOptimized {
		p.weight[StageTranscribe] = optimizedWeight
	}
}

// part reports that a stage has done done of total.
func (p *progress) part(s Stage, done, total float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > 0 {
		p.done[s] = max(p.done[s], min(1, done/total))
	}
	p.send(s, false)
}

// ended reports the end of a stage and keeps its time.
func (p *progress) ended(s Stage, took time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seconds[s] = took.Seconds()
	if ok {
		p.done[s] = 1
		p.send(s, true)
	}
}

func (p *progress) send(s Stage, done bool) {
	var all, have float64
	for stage, w := range p.weight {
		all += w
		have += w * p.done[stage]
	}
	if all > 0 {
		p.reached = max(p.reached, min(1, have/all))
	}
	if p.report != nil {
		p.report(Progress{Stage: s, Fraction: p.reached, Done: done, AudioDuration: p.length})
	}
}
