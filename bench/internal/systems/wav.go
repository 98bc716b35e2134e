package systems

import (
	"math"
	"os"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/files/mediafiles"
)

// WriteWAV writes samples at 16 kHz as a WAV file, mono with 16 bits.
func WriteWAV(path string, samples []float32) error {
	data := mediafiles.Samples16(samples)
	header := mediafiles.WAVHeader(audio.SampleRate, uint32(min(len(data), math.MaxUint32)))
	return os.WriteFile(path, append(header, data...), 0o666)
}
