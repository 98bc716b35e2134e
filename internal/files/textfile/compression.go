package textfile

import (
	"compress/zlib"
	"sync"
)

// CompressionRatio returns the length of a text divided by its length after
// zlib, the Whisper paper's measure of repetition (Radford et al. 2022, section
// 4.5): a text above 2.4 counts as a loop. It is 0 for an empty text.
func CompressionRatio(text string) float64 {
	if text == "" {
		return 0
	}
	var n counter
	z := writers.Get().(*zlib.Writer)
	defer writers.Put(z)
	z.Reset(&n)
	_, _ = z.Write([]byte(text)) // writing to a counter never fails
	_ = z.Close()
	return float64(len(text)) / float64(n)
}

// writers are reused, because each takes 600 KB.
var writers = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
