//go:build cgo

package whispernet

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkNetwork times an encoder pass and decoder passes on one thread, with
// the model named by OTOGRAPH_BENCH_MODEL, else the test's, and the kernels
// named by OTOGRAPH_KERNELS.
func BenchmarkNetwork(b *testing.B) {
	file := testFile(8)
	if path := os.Getenv("OTOGRAPH_BENCH_MODEL"); path != "" {
		var err error
		file, err = os.ReadFile(path)
		require.NoError(b, err)
	}
	m, err := Open(checked(b, file), Options{Kernels: os.Getenv("OTOGRAPH_KERNELS")})
	require.NoError(b, err)
	defer m.Close()
	b.Run("encoder", func(b *testing.B) {
		for b.Loop() {
			w, err := m.Encode(testSound(1), 5, 1, nil)
			require.NoError(b, err)
			w.Free()
		}
	})
	for _, windows := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("decoder, %d windows of 5 beams", windows), func(b *testing.B) {
			d := m.NewDecoder(1)
			defer d.Free()
			var columns []Column
			for i := range windows {
				w, err := m.Encode(testSound(uint64(i)), 5, 1, nil)
				require.NoError(b, err)
				defer w.Free()
				for row := range 5 {
					columns = append(columns, Column{Window: w, Row: row, Position: 50, Token: 400, Logits: make([]float32, m.header.Vocabulary)})
				}
			}
			for b.Loop() {
				require.NoError(b, d.Step(columns, nil))
			}
		})
	}
}
