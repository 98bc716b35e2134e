package audio

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samplesInMatroska is a stream of three blocks of two samples at 8000 Hz: at
// 5 ms, at 6 ms (written by ffmpeg instead of a time that goes back), and in a
// group, at 1005 ms.
const samplesInMatroska = "\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff" + // unknown length
	"\xec\x83xyz" + // void
	"\x16\x54\xae\x6b\x91\xae\x8f\xe1\x8d\xb5\x88\x40\xbf\x40\x00\x00\x00\x00\x00\x9f\x81\x01" +
	"\x1f\x43\xb6\x75\xff\xe7\x81\x05\xa3\x8c\x81\x00\x00\x80abcdefgh" +
	"\xa3\x8c\x81\x00\x01\x80abcdefgh" +
	"\x1f\x43\xb6\x75\xa1\xe7\x82\x03\xe8\xa0\x8e\xa1\x8c\x81\x00\x05\x00abcdefgh"

func TestMatroskaBlocksHaveTimes(t *testing.T) {
	var times, lengths []float64
	m := &matroskaReader{r: bufio.NewReader(bytes.NewReader([]byte(samplesInMatroska))), block: func(time, length float64) {
		times, lengths = append(times, time), append(lengths, length)
	}}
	h, err := m.readHeader()
	require.NoError(t, err)
	assert.Equal(t, []int{8000, 1, 4}, []int{h.rate, h.channels, h.align})
	samples, err := io.ReadAll(m)
	require.NoError(t, err)
	assert.Equal(t, "abcdefghabcdefghabcdefgh", string(samples))
	assert.Equal(t, []float64{0.00025, 0.00025, 0.00025}, lengths)
	require.Len(t, times, 3)
	assert.True(t, math.IsNaN(times[1]))
	assert.Equal(t, []float64{0.005, 1.005}, []float64{times[0], times[2]})
}

// FuzzMatroska: any bytes end with io.EOF or errMatroska, and give no more
// samples than bytes and no length that is not a number.
func FuzzMatroska(f *testing.F) {
	f.Add([]byte(samplesInMatroska))
	f.Add([]byte(samplesInMatroska + "\x16\x54\xae\x6b\x88\xae\x86\xe1\x84\x9f\x81\x00\xb5\x80" + "\xa3\x8c\x81\x00\x09\x80abcdefgh")) // no channels later on
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &matroskaReader{r: bufio.NewReader(bytes.NewReader(b)), block: func(_, length float64) {
			require.False(t, math.IsInf(length, 0) || math.IsNaN(length) || length < 0, "a length of %g s", length)
		}}
		if _, err := m.readHeader(); err != nil {
			require.Contains(t, []error{io.EOF, errMatroska}, err)
			return
		}
		samples, err := io.ReadAll(m)
		require.LessOrEqual(t, len(samples), len(b))
		if err != nil {
			require.ErrorIs(t, err, errMatroska)
		}
	})
}
