package decode_test

import (
	"fmt"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/decode"
)

func ExamplePack() {
	pcm := audio.FromSamples(make([]float32, 40*audio.SampleRate))
	speech := []audio.Span{
		{Start: 1 * audio.SampleRate, End: 4 * audio.SampleRate},
		{Start: 9 * audio.SampleRate, End: 12 * audio.SampleRate}, // after a silence of 5 s
		{Start: 13 * audio.SampleRate, End: 18 * audio.SampleRate},
	}
	for _, w := range decode.Pack(speech, pcm, decode.PackOptions{Max: 10}) {
		fmt.Printf("%.1f s of sound, %.1f s of speech, from %.1f s of the file\n",
			float64(w.Len())/audio.SampleRate, w.SpeechSeconds(), w.Time(0))
	}
	// Output:
	// 7.2 s of sound, 6.0 s of speech, from 0.8 s of the file
	// 5.7 s of sound, 5.0 s of speech, from 12.8 s of the file
}
