package systems

import (
	"errors"
	"os"

	goaudio "github.com/go-audio/audio"
	"github.com/go-audio/wav"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
)

// WriteWAV writes samples at 16 kHz as a WAV file, mono with 16 bits. Samples
// that were decoded from 16 bits keep their values.
func WriteWAV(path string, samples []float32) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	numbers := make([]int, 0, len(samples))
	for _, s := range samples {
		numbers = append(numbers, int(mediafiles.Sample16(s)))
	}
	e := wav.NewEncoder(f, audio.SampleRate, 16, 1, 1)
	err = e.Write(&goaudio.IntBuffer{Format: &goaudio.Format{NumChannels: 1, SampleRate: audio.SampleRate}, Data: numbers, SourceBitDepth: 16})
	return errors.Join(err, e.Close(), f.Close())
}
