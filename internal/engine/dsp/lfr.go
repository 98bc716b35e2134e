package dsp

// LFRFrames returns the number of rows of StackFrames: ⌈frames/n⌉.
func LFRFrames(frames, n int) int { return (frames + n - 1) / n }

// StackFrames implements FunASR's low frame rate: row i is the concatenation of
// the m frames around n·i (n·i-(m-1)/2 … n·i+m/2), where the edges are
// repeated. It writes LFRFrames(frames, n) rows of m·bands values to dst.
func StackFrames(dst, src []float32, frames, bands, m, n int) int {
	out := LFRFrames(frames, n)
	for i := range out {
		for j := range m {
			k := min(max(n*i+j-(m-1)/2, 0), frames-1)
			copy(dst[(i*m+j)*bands:][:bands], src[k*bands:][:bands])
		}
	}
	return out
}

// ApplyCMVN computes (x + shift)·scale per column of a matrix with rows of
// len(shift) values, in place: FunASR's neg_mean and inv_stddev.
func ApplyCMVN(x, shift, scale []float32) {
	d := len(shift)
	scale = scale[:d]
	for len(x) >= d && d > 0 {
		row := x[:d]
		for i := range row {
			row[i] = (row[i] + shift[i]) * scale[i]
		}
		x = x[d:]
	}
}
