//go:build unix

package whisper

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr"
	"github.com/otograph/otograph/audio"
)

// processorTime returns the CPU time of the process so far: on a busy machine
// it is more reliable than the clock.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchmark(b *testing.B, e *Engine, pcm *audio.PCM, speech []audio.Span, o asr.Options) {
	b.Helper()
	o.Language = "en"
	run := func() {
		_, err := e.Transcribe(context.Background(), pcm, speech, o)
		require.NoError(b, err)
	}
	run()
	b.ResetTimer()
	before := processorTime()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64((processorTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkDemo decodes 20 s with the demo model.
func BenchmarkDemo(b *testing.B) {
	e := openDemo(b)
	pcm, speech := together(b, 1, clips[:4]...)
	for _, c := range []struct {
		name string
		beam int
	}{{"greedy", 1}, {"beam5", 5}} {
		b.Run(c.name, func(b *testing.B) {
			o := asr.DefaultOptions()
			o.BeamSize = c.beam
			benchmark(b, e, pcm, speech, o)
		})
	}
}

// BenchmarkModel decodes one window of 30 s of noise with the model named by
// OTOGRAPH_BENCH_MODEL, greedily and on one thread, for comparison with
// libwhisper's own whisper_full on the same model.
func BenchmarkModel(b *testing.B) {
	path := os.Getenv("OTOGRAPH_BENCH_MODEL")
	if path == "" {
		b.Skip("OTOGRAPH_BENCH_MODEL names no model")
	}
	e, err := openFile(modelFile{Path: path}, Options{})
	require.NoError(b, err)
	defer e.Close()
	x := make([]float32, 30*second)
	seed := uint32(1)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = float32(int(seed>>16)-32768) / 300000
	}
	o := asr.DefaultOptions()
	o.BeamSize = 1
	benchmark(b, e, audio.FromSamples(x), []audio.Span{{Start: second / 2, End: len(x) - second/2}}, o)
}
