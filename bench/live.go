package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench/internal/scores"
	"github.com/otograph/otograph/internal/system/host"
	"github.com/otograph/otograph/live"
)

const (
	// packet is the sound that a session gets at a time: 20 ms, as telephones
	// and browsers send it.
	packet = audio.SampleRate / 50
	// silenceAfter is the silence after a recording, so that its last utterance
	// ends by its pause.
	silenceAfter = 2 * audio.SampleRate
	// mostSessions is the largest number of sessions that Live tries.
	mostSessions = 256
)

// liveLimits are the latencies (seconds) of the largest numbers of sessions.
var liveLimits = []float64{0.3, 1}

// LiveReport is the result of Live.
type LiveReport struct {
	System     string      `json:"system"`
	Machine    Machine     `json:"machine"`
	Recordings int         `json:"recordings"`
	Levels     []liveLevel `json:"levels"`
	// Failures names the numbers of sessions that another recognizer did not serve.
	Failures []string `json:"failures,omitempty"`
	// Most holds, for each of the limits of 0.3 and 1 s, the largest number of
	// sessions for which 95 % of the final texts came within the limit after
	// their utterances' ends; nil if the caller chose the numbers of sessions.
	Most []int `json:"most_sessions,omitempty"`
}

// liveLevel is the result of a number of concurrent sessions.
type liveLevel struct {
	Sessions int     `json:"sessions"`
	Sound    float64 `json:"sound_seconds"` // of all sessions
	CPU      float64 `json:"cpu_seconds"`
	// AfterStop has the latencies of final texts after the ends of their
	// utterances, AfterWord after the ends of their last words, and Interim those
	// of the first text with a word after the word's end.
	AfterStop latencies `json:"final_after_stop"`
	AfterWord latencies `json:"final_after_last_word"`
	Interim   latencies `json:"word_shown_after_its_end"`
	// Changed counts the words of partial texts that the next text lacked; Words
	// counts the words of all final texts.
	Changed int        `json:"changed_words"`
	Words   int        `json:"words"`
	Errors  WordErrors `json:"errors"`
	Offline WordErrors `json:"offline_errors"` // of the whole recordings
}

// LiveStream is the receiver of a recording: a live.Session, or a session of
// another recognizer. Its Events are read until they end.
type LiveStream interface {
	Write(samples []float32) error
	Events() iter.Seq2[live.Event, error]
	Close() (*otograph.Result, error)
}

// liveBench plays recordings to sessions of a system.
type liveBench struct {
	Config
	system   System
	pipeline *otograph.Pipeline // of the first system
	sounds   []*audio.PCM
	offline  []*otograph.Result
	seconds  float64 // of a session; 0 plays all recordings
	report   LiveReport
	refused  int // the last number of sessions that the system did not serve; 0 for none
}

// Live plays recordings at their own speed to concurrent live sessions of the
// first system and of those with a Stream, and compares their texts and times
// with the first system's results of whole recordings. Each session plays all
// recordings, beginning with another one, for at least the given seconds if they
// are not 0. Without numbers of sessions it measures one session and searches
// for the largest numbers that keep up. It passes each system's report to
// report, and goes on with the next system after an error.
func Live(ctx context.Context, c Config, sessions []int, seconds float64, report func(*LiveReport) error) (err error) {
	items, remove, err := c.cutParts(ctx)
	if err != nil {
		return err
	}
	defer remove()
	c.Items = items
	b := &liveBench{Config: c, system: c.Systems[0], seconds: seconds}
	if b.pipeline, err = otograph.Open(b.system.Set, otograph.Config{Cores: c.Cores, Device: c.Device, OptimizedWords: true, Cascade: new(0.0), Audio: c.Audio}); err != nil {
		return err
	}
	defer func() {
		for _, pcm := range b.sounds {
			err = errors.Join(err, pcm.Close())
		}
		err = errors.Join(err, b.pipeline.Close())
	}()
	if err = b.prepare(ctx); err != nil {
		return err
	}
	for i, s := range c.Systems {
		if i > 0 && s.Stream == nil {
			return fmt.Errorf("%s: expected a Stream, found none: only the first system's models are measured", s.Name)
		}
		b.system, b.report, b.refused = s, LiveReport{System: s.Name, Machine: ThisMachine(), Recordings: len(items)}, 0
		failed := b.measure(ctx, sessions)
		if failed == nil {
			failed = report(new(b.report))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", s.Name, failed))
		}
	}
	return err
}

// measure completes the report of the system.
func (b *liveBench) measure(ctx context.Context, sessions []int) error {
	for _, n := range sessions {
		if _, err := b.level(ctx, n); err != nil {
			return err
		}
	}
	for i := 0; i < len(liveLimits) && len(sessions) == 0; i++ {
		most, err := largest(mostSessions, func(n int) (bool, error) {
			if b.refused > 0 && n >= b.refused {
				return false, nil
			}
			l, err := b.level(ctx, n)
			return len(l.AfterStop) > 0 && l.AfterStop.percentiles()[1] <= liveLimits[i], err
		})
		if err != nil {
			return err
		}
		b.report.Most = append(b.report.Most, most)
	}
	slices.SortFunc(b.report.Levels, func(a, b liveLevel) int { return a.Sessions - b.Sessions })
	return nil
}

// prepare decodes the recordings and transcribes them as a whole, which also
// loads the models.
func (b *liveBench) prepare(ctx context.Context) error {
	for i, it := range b.Items {
		b.announce(it.Name, "transcribe as a whole", i)
		pcm, err := audio.Open(ctx, otograph.File(it.Path), b.Audio)
		if err != nil {
			return fmt.Errorf("%s: %w", it.Name, err)
		}
		b.sounds = append(b.sounds, pcm)
		samples := audio.Raw(pcm.Samples(0, pcm.Len()), audio.SampleRate, 1)
		res, err := b.pipeline.Run(ctx, samples, b.system.options(it))
		if err != nil {
			return fmt.Errorf("%s: %w", it.Name, err)
		}
		b.offline = append(b.offline, res)
	}
	return nil
}

func (b *liveBench) announce(item, what string, done int) {
	if b.Progress != nil {
		b.Progress(Step{System: b.system.Name, Item: item, What: what, Done: float64(done), Total: float64(len(b.Items))})
	}
}

// level returns the result of n concurrent sessions, and measures it unless the
// report has it.
func (b *liveBench) level(ctx context.Context, n int) (liveLevel, error) {
	if i := slices.IndexFunc(b.report.Levels, func(l liveLevel) bool { return l.Sessions == n }); i >= 0 {
		return b.report.Levels[i], nil
	}
	l := liveLevel{Sessions: n}
	var mu sync.Mutex // of l
	cpu := host.ProcessorSeconds()
	group, inner := errgroup.WithContext(ctx)
	for k := range n {
		group.Go(func() error {
			sound := 0.0
			for i := 0; i < len(b.Items) && (b.seconds == 0 || sound < b.seconds); i++ {
				at := (k*len(b.Items)/n + i) % len(b.Items)
				it := b.Items[at]
				if k == 0 {
					b.announce(it.Name, fmt.Sprintf("%d at a time", n), i)
				}
				opt := b.system.options(it)
				var s LiveStream
				var err error
				if stream := b.system.Stream; stream != nil {
					s, err = stream(inner, opt.ASRLanguage)
				} else {
					s, err = live.Open(inner, b.pipeline, live.Options{Options: opt})
				}
				if err != nil {
					return err
				}
				res, list, err := play(s, b.sounds[at])
				if err != nil {
					return fmt.Errorf("%s: %w", it.Name, err)
				}
				sound += res.AudioDuration
				mu.Lock()
				l.score(it, b.offline[at], res, list)
				l.Sound += res.AudioDuration
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	if err != nil && n > 1 && b.system.Stream != nil && ctx.Err() == nil {
		b.refused, b.report.Failures = n, append(b.report.Failures, fmt.Sprintf("%d sessions: %v", n, err))
		return liveLevel{}, nil
	}
	if err == nil && len(l.AfterStop) == 0 {
		err = errors.New("live: no utterance has a text")
	}
	l.CPU = host.ProcessorSeconds() - cpu
	b.report.Levels = append(b.report.Levels, l)
	return l, err
}

// play writes a recording and some silence at the speed of speech, each packet
// when its last sample is spoken, and returns the result and the events.
func play(s LiveStream, pcm *audio.PCM) (*otograph.Result, []arrival, error) {
	var list []arrival
	start := time.Now()
	read := make(chan error, 1)
	go func() {
		for e, err := range s.Events() {
			if err != nil {
				read <- err
				return
			}
			list = append(list, arrival{time.Since(start).Seconds(), e})
		}
		read <- nil
	}()
	var failed error
	for at := 0; at < pcm.Len()+silenceAfter && failed == nil; at += packet {
		time.Sleep(time.Until(start.Add(time.Duration(at+packet) * time.Second / audio.SampleRate)))
		samples := pcm.Append(make([]float32, 0, packet), at, at+packet)
		failed = s.Write(samples[:packet])
	}
	res, err := s.Close()
	return res, list, cmp.Or(<-read, failed, err)
}

// largest returns the largest n up to most for which ok is true, which must be
// true for all smaller ones; 0 for none. It doubles n, then halves the interval.
func largest(most int, ok func(n int) (bool, error)) (int, error) {
	low, high := 0, most+1
	for n := 1; low+1 < high; {
		good, err := ok(n)
		if err != nil {
			return 0, err
		}
		if good {
			low = n
		} else {
			high = n
		}
		if n = 2 * low; high <= most || n >= high {
			n = (low + high) / 2
		}
	}
	return low, nil
}

// WriteTable writes the report for a terminal.
func (r *LiveReport) WriteTable(w io.Writer) error {
	table := [][]string{
		{"median, P95, P99; sessions"},
		{"final text after the end of its utterance"},
		{"final text after its last word"},
		{"word shown after its end"},
		{"partial words changed later"},
		{"word error rate of final texts"},
		{"word error rate of whole recordings"},
		{"processor time, of the sound's length"},
	}
	for _, l := range r.Levels {
		for i, cell := range []string{
			strconv.Itoa(l.Sessions), l.AfterStop.String(), l.AfterWord.String(), l.Interim.String(),
			fmt.Sprintf("%.1f %%", 100*scores.Share(l.Changed, l.Words)), fmt.Sprintf("%.2f %%", 100*l.Errors.Rate()), fmt.Sprintf("%.2f %%", 100*l.Offline.Rate()),
			fmt.Sprintf("%.2f", l.CPU/l.Sound),
		} {
			table[i] = append(table[i], cell)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, played at their own speed; %s\n\n", r.System, recordings(r.Recordings), r.Machine)
	align(&b, table)
	for _, failure := range r.Failures {
		fmt.Fprintf(&b, "\n%s", failure)
	}
	for i, most := range r.Most {
		fmt.Fprintf(&b, "\nSessions with 95 %% of the final texts within %g s of the end of their utterances: %d", liveLimits[i], most)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}
