package audio

import "golang.org/x/sys/cpu"

// Every x86-64 server and desktop processor since 2015 has both, but the
// compiler may not assume it.
var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotFMA returns the sum of a[i]·b[i] for i < n, where n is a positive multiple
// of 8.
//
//go:noescape
func dotFMA(a, b *float32, n int) float32

// dot returns the sum of a[i]·b[i]; both have the same length, a positive
// multiple of 8.
func dot(a, b []float32) float32 {
	if hasFMA {
		b = b[:len(a)]
		return dotFMA(&a[0], &b[0], len(a))
	}
	return dotGo(a, b)
}

// rowFMA writes dotFMA(row, buf[k·down:]) to out[k·up] for k < 3·groups.
//
//go:noescape
func rowFMA(out, row, buf *float32, taps, groups, down, up int)

// dotRow writes dot(row, buf[k·down:]) to out[k·up] for k < 3·groups.
func dotRow(out, row, buf []float32, groups, down, up int) {
	if !hasFMA {
		dotRowGo(out, row, buf, groups, down, up)
		return
	}
	_, _ = out[(3*groups-1)*up], buf[(3*groups-1)*down+len(row)-1]
	rowFMA(&out[0], &row[0], &buf[0], len(row), groups, down, up)
}
