package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
)

// listener is an engine that returns the length and the first sample of its
// recordings.
type listener struct {
	heard    map[string][2]float64
	speakers bool
}

func (listener) Identity() string { return "listener" }

func (l listener) Transcribe(ctx context.Context, it Item) (*otograph.Result, Cost, error) {
	pcm, err := audio.Open(ctx, audio.File(it.Path), audio.Options{})
	if err != nil {
		return nil, Cost{}, err
	}
	l.heard[it.Name] = [2]float64{pcm.Duration(), float64(pcm.Samples(0, 1)[0])}
	return &otograph.Result{Ran: otograph.Capabilities{ASR: true, Diarize: l.speakers}, Segments: []otograph.Segment{{Text: *it.Text}}}, Cost{Audio: 1, Wall: 0.5, CPU: 1, PeakRSS: 3 << 20}, pcm.Close()
}

// steps writes a recording of some seconds, each of another level.
func steps(t *testing.T, seconds int) string {
	path := filepath.Join(t.TempDir(), "steps.wav")
	f, err := os.Create(path)
	require.NoError(t, err)
	var samples []int
	for i := range seconds * audio.SampleRate {
		samples = append(samples, 1000*(i/audio.SampleRate))
	}
	e := wav.NewEncoder(f, audio.SampleRate, 16, 1, 1)
	require.NoError(t, e.Write(&goaudio.IntBuffer{Format: &goaudio.Format{NumChannels: 1, SampleRate: audio.SampleRate}, Data: samples, SourceBitDepth: 16}))
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	return path
}

// TestPartsOfRecordings: every system gets the sound of the part alone.
func TestPartsOfRecordings(t *testing.T) {
	path := steps(t, 6)
	manifest := filepath.Join(t.TempDir(), "m.jsonl")
	require.NoError(t, os.WriteFile(manifest, []byte(strings.ReplaceAll(`{"file":"F","offset":0,"duration":2,"text":"a"}
{"file":"F","offset":4,"text":"b"}
{"file":"F","offset":5,"duration":0.5,"text":"c"}`, "F", path)), 0o600))
	items, err := Load(manifest)
	require.NoError(t, err)
	l := listener{heard: map[string][2]float64{}}
	report, err := Run(t.Context(), Config{Items: items, Systems: []System{{Name: "l", Engine: l}}})
	require.NoError(t, err)
	assert.Zero(t, report.Systems[0].Failed)
	base := strings.TrimSuffix(path, ".wav")
	for name, want := range map[string][2]float64{path: {2, 0}, base + "@4.wav": {2, 4000. / 32768}, base + "@5.wav": {0.5, 5000. / 32768}} {
		assert.InDeltaSlice(t, want[:], []float64{l.heard[name][0], l.heard[name][1]}, 1e-3, name)
	}
	items[0].Part.Start = 7
	_, err = Run(t.Context(), Config{Items: items, Systems: []System{{Name: "l", Engine: l}}})
	assert.ErrorContains(t, err, "expected an offset within the recording")
}

// TestReportInWords: the sentences name the work, the starts, the costs, each
// order of the systems once, and the reason for the largest difference.
func TestReportInWords(t *testing.T) {
	items := []Item{{Name: "one.wav", Path: steps(t, 2), Text: new("Good day, all.")}, {Name: "two.wav", Path: steps(t, 2), Text: new("yes")}}
	program, err := Command(`sh -c 'echo Good day. all.; for i in 1 2 3 4 5 6 7 8 9; do :; done' {file}`, 1e10)
	require.NoError(t, err)
	run := func(speakers bool) *Report {
		exact := listener{map[string][2]float64{}, speakers}
		report, err := Run(t.Context(), Config{Items: items, Systems: []System{{Name: "exact", Engine: exact}, {Name: "loose", Engine: program}}})
		require.NoError(t, err)
		return report
	}
	report := run(true)
	text := strings.Join(report.findings(), "\n")
	assert.Contains(t, text, "Work of exact: text, speakers;")
	assert.Contains(t, text, "did not do the same work")
	assert.NotContains(t, text, "MiB of memory")
	report = run(false)
	require.NotNil(t, report.Systems[1].Start)
	report.Machine.Cores, report.Machine.LoadAverage[0] = 2, "9.83"
	report.Systems[1].Start, report.Systems[1].Cost.PeakRSS = &Cost{Wall: 1e-9}, 2<<20 // too short to be measured
	text = strings.Join(report.findings(), "\n")
	for _, part := range []string{
		"The machine was busy: load average 9.83 on 2 cores", "Work of exact: text;", "Work of loose: text; it was started for each recording: ",
		"Without starts, loose is ", "times as fast as exact", "needs up to 2 MiB of memory against 3 MiB",
		"loose makes ", "of them in two.wav", "“yes → ",
	} {
		assert.Contains(t, text, part)
	}
	assert.Equal(t, 1, strings.Count(text, "Order by "), text)
	var table strings.Builder
	require.NoError(t, report.WriteTable(&table))
	assert.Contains(t, table.String(), "· without starts, × real time")
}

// TestSameSteps: in a comparison, the models run the steps that all other
// systems run, unless an option decides otherwise.
func TestSameSteps(t *testing.T) {
	turns := filepath.Join(t.TempDir(), "a.rttm")
	require.NoError(t, os.WriteFile(turns, []byte("SPEAKER a 1 0 1 <NA> <NA> x <NA> <NA>\n"), 0o600))
	items := []Item{{Name: "a.wav"}}
	spoken, err := Files(turns, items)
	require.NoError(t, err)
	program, err := Command("echo {file}", 1e9)
	require.NoError(t, err)
	steps := func(own otograph.Options, others ...Engine) []*bool {
		c := Config{Items: items, Systems: []System{{Options: own}}}
		for _, e := range others {
			c.Systems = append(c.Systems, System{Engine: e})
		}
		got := c.withSameSteps(t.Context())[0].Options
		return []*bool{got.EnableDiarize, got.EnableAudioEvents}
	}
	assert.Equal(t, []*bool{nil, nil}, steps(otograph.Options{}))
	assert.Equal(t, []*bool{nil, new(false)}, steps(otograph.Options{}, spoken))
	assert.Equal(t, []*bool{new(false), new(false)}, steps(otograph.Options{}, spoken, program))
	assert.Equal(t, []*bool{new(true), new(true)}, steps(otograph.Options{EnableDiarize: new(true), EnableAudioEvents: new(true)}, program))
}
