package networks_test

import (
	"cmp"
	"context"
	"fmt"
	"log"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

// The speaker embedder alone compares the voices of three stretches.
func Example() {
	ctx := context.Background()
	file, err := demo.Models().Need(models.RoleEmbedder)
	if err != nil {
		log.Fatal(err)
	}
	voices, err := networks.OpenEmbedder(file, networks.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = voices.Close() }()
	pcm, err := audio.Open(ctx, audio.File("../../testdata/conversation.flac"), audio.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pcm.Close() }()
	second := func(from, to float64) audio.Span {
		return audio.Span{Start: int(from * audio.SampleRate), End: int(to * audio.SampleRate)}
	}
	// Speaker 0 asks, speaker 1 answers, speaker 0 answers.
	vectors, err := voices.Embed(ctx, pcm, []audio.Span{second(5.8, 7.5), second(8.1, 11), second(11.7, 13.4)})
	if err != nil {
		log.Fatal(err)
	}
	alike := func(a, b []float32) bool {
		var cosine float64
		for i := range a {
			cosine += float64(a[i]) * float64(b[i])
		}
		return cosine >= cmp.Or(voices.SameSpeaker(), diarize.DefaultSameSpeaker)
	}
	fmt.Println(alike(vectors[0], vectors[1]), alike(vectors[0], vectors[2]))
	// Output: false true
}
