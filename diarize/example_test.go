package diarize_test

import (
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/vad"
	"github.com/otograph/otograph/vad/silero"
)

// Speaker diarization alone: a voice activity detector, an embedder, and
// clustering.
func Example() {
	ctx := context.Background()
	set := demo.Models()
	file, err := set.Need(models.RoleVAD)
	if err != nil {
		log.Fatal(err)
	}
	detector, err := silero.Open(file, silero.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = detector.Close() }()
	if file, err = set.Need(models.RoleEmbedder); err != nil {
		log.Fatal(err)
	}
	voices, err := networks.OpenEmbedder(file, networks.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = voices.Close() }()

	pcm, err := audio.Open(ctx, audio.File("../testdata/conversation.flac"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	speech, err := vad.Detect(ctx, detector, pcm, vad.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	found, err := diarize.Diarize(ctx, voices, pcm, speech, diarize.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.Speakers), "speakers")
	for _, t := range found.Turns[:3] {
		fmt.Printf("%.1f s to %.1f s: speaker %d\n", t.Start, t.End, t.Speaker)
	}
	// Output:
	// 2 speakers
	// 5.7 s to 7.4 s: speaker 0
	// 8.1 s to 9.3 s: speaker 1
	// 9.5 s to 10.2 s: speaker 1
}

// pitch is a custom embedder: two numbers that show whether the sound is
// positive or negative.
type pitch struct{}

func (pitch) Dim() int             { return 2 }
func (pitch) SameSpeaker() float64 { return 0.9 }

func (pitch) Cosines() (one, two float64) { return 0, 0 }
func (pitch) PLDA() *diarize.PLDA         { return nil }
func (pitch) Close() error                { return nil }

func (pitch) Embed(ctx context.Context, pcm *audio.PCM, windows []audio.Span) ([][]float32, error) {
	vectors := make([][]float32, len(windows))
	for i, w := range windows {
		vectors[i] = []float32{1, 0}
		if pcm.Samples(w.Start, w.Start+1)[0] < 0 {
			vectors[i] = []float32{0, 1}
		}
	}
	return vectors, ctx.Err()
}

// A custom embedder needs four methods.
func ExampleDiarize() {
	samples := make([]float32, 20*audio.SampleRate)
	for i := range samples {
		samples[i] = 0.1
		if i >= 10*audio.SampleRate {
			samples[i] = -0.1
		}
	}
	speech := []audio.Span{{Start: 0, End: 9 * audio.SampleRate}, {Start: 11 * audio.SampleRate, End: 20 * audio.SampleRate}}
	found, err := diarize.Diarize(context.Background(), pitch{}, audio.FromSamples(samples), speech, diarize.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range found.Turns {
		fmt.Printf("%.0f s to %.0f s: speaker %d\n", t.Start, t.End, t.Speaker)
	}
	// Output:
	// 0 s to 9 s: speaker 0
	// 11 s to 20 s: speaker 1
}
