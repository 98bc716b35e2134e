//go:build !amd64

package audio

// dot returns the sum of a[i]·b[i]; both have the same length, a positive
// multiple of 8.
func dot(a, b []float32) float32 { return dotGo(a, b) }

// dotRow writes dot(row, buf[k·down:]) to out[k·up] for k < 3·groups.
func dotRow(out, row, buf []float32, groups, down, up int) {
	dotRowGo(out, row, buf, groups, down, up)
}
