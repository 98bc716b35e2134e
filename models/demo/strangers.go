package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/otograph/otograph/models"
)

// strangersDim is the dimension of demo-speaker's vectors.
const strangersDim = 192

// strangers returns the vectors of 256 of the voices that demo-speaker was
// trained on (training/sound/strangers.py), excluding the bundled recording's
// voice. Its file begins with the hash of the model that computed the vectors,
// because they are meaningless for another model.
func strangers() ([][]float32, error) {
	strangersRead.Do(func() { strangersVectors, strangersErr = readStrangers() })
	return strangersVectors, strangersErr
}

var (
	strangersRead    sync.Once
	strangersVectors [][]float32
	strangersErr     error
)

func readStrangers() ([][]float32, error) {
	hash, numbers := strangersI8[:sha256.Size], strangersI8[sha256.Size:]
	if found := hex.EncodeToString(hash); found != speaker.SHA256 {
		return nil, fmt.Errorf("%w: demo-speaker-strangers.i8 is of the model %.8s, expected %.8s", models.ErrBroken, found, speaker.SHA256)
	}
	if len(numbers)%strangersDim != 0 {
		return nil, fmt.Errorf("%w: demo-speaker-strangers.i8 has %d numbers, expected vectors of %d", models.ErrBroken, len(numbers), strangersDim)
	}
	out := make([][]float32, len(numbers)/strangersDim)
	for i := range out {
		out[i] = make([]float32, strangersDim)
		for d := range out[i] {
			out[i][d] = float32(int8(numbers[i*strangersDim+d]))
		}
	}
	return out, nil
}
