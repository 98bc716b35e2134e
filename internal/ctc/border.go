package ctc

import (
	_ "embed" // the network's weights
	"encoding/binary"
	"math"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/dsp"
)

// A small network hears where a word begins: from the spectrum around a point of
// time and the letters on both sides it scores the point as a border, every
// 10 ms. It was trained on synthesizers' own word times (training/README.md).
const (
	borderBands  = 24 // of the filter bank, 10 ms apart
	borderPools  = 15
	borderInputs = borderPools * borderBands
	borderHidden = 48
	borderSecond = 24
	letterKinds  = 29 // other, a … z, none behind or before it, no word before
	// earliest and latest bound where a border is looked for, in frames of 10 ms
	// from the middle of the row in which the word's first token fires.
	earliest, latest = -56, 18
	borderCount      = latest - earliest + 1
	// farthest is the distance to the word before from which on it does not
	// matter, in frames.
	farthest = 60
)

// pools are the stretches of frames around a border that the network gets the
// means of.
var pools = [borderPools][2]int{
	{-16, -11},
	{-11, -7},
	{-7, -5},
	{-5, -4},
	{-4, -3},
	{-3, -2},
	{-2, -1},
	{-1, 0},
	{0, 1},
	{1, 2},
	{2, 3},
	{3, 4},
	{4, 6},
	{6, 10},
	{10, 16},
}

//go:embed border.f32
var borderFile []byte

// borderNet holds the network's weights.
type borderNet struct {
	first   []float32 // inputs x hidden
	letters []float32 // 4 x kinds x hidden
	bias    []float32 // hidden
	second  []float32 // hidden x second
	bias2   []float32
	last    []float32 // second
	// lag scores how long after the border the token fires, for words that
	// others precede and for fresh ones; near scores the distance to the last
	// token of the word before.
	lag  [2][]float32
	near []float32
}

var loadBorders = sync.OnceValue(func() *borderNet {
	all := make([]float32, len(borderFile)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(borderFile[4*i:]))
	}
	take := func(n int) []float32 {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	return &borderNet{
		first: take(borderInputs * borderHidden), letters: take(4 * letterKinds * borderHidden), bias: take(borderHidden),
		second: take(borderHidden * borderSecond), bias2: take(borderSecond), last: take(borderSecond),
		lag: [2][]float32{take(borderCount), take(borderCount)}, near: take(2*farthest + 1),
	}
})

// spectrum is the sound of a stretch as the network hears it: sums of the
// normalized bands from the beginning up to each frame.
type spectrum struct {
	start  int // of the stretch, in frames of the file
	frames int
	sums   []float64
	hidden []float32 // of each border once it has been asked for
	done   []bool
}

// spectrumMargin is how many frames around a stretch are heard with it.
const spectrumMargin = 80

// newSpectrum listens to a stretch of the file (frames of 10 ms). The mean of
// the speech in it counts as nought.
func newSpectrum(pcm *audio.PCM, from, to int, speech []audio.Span) *spectrum {
	const hop = audio.SampleRate / 100
	from, to = max(from-spectrumMargin, 0), min(to+spectrumMargin, pcm.Len()/hop)
	s := &spectrum{start: from, frames: max(to-from, 0)}
	rows := Bands(pcm.Samples(from*hop, from*hop+s.frames*hop))
	s.frames = len(rows) / borderBands
	var mean [borderBands]float64
	counted := 0.0
	for _, sp := range speech {
		a, b := max(sp.Start/hop-from, 0), min(sp.End/hop-from, s.frames)
		for f := a; f < b; f++ {
			for k := range mean {
				mean[k] += float64(rows[f*borderBands+k])
			}
			counted++
		}
	}
	s.sums = make([]float64, (s.frames+1)*borderBands)
	for f := range s.frames {
		for k := range mean {
			v := (float64(rows[f*borderBands+k]) - mean[k]/max(counted, 1)) / 3
			s.sums[(f+1)*borderBands+k] = s.sums[f*borderBands+k] + min(max(v, -4), 4)
		}
	}
	s.hidden = make([]float32, (s.frames+1)*borderHidden)
	s.done = make([]bool, s.frames+1)
	return s
}

// Bands returns the logarithms of the mel bands of every 10 ms.
func Bands(samples []float32) []float32 {
	opt := dsp.DefaultFbankOptions()
	opt.Bands, opt.SnipEdges = borderBands, false
	bank := dsp.NewFbank(opt)
	rows := make([]float32, bank.Frames(len(samples))*borderBands)
	bank.Compute(rows, samples)
	return rows
}

// at returns what the network makes of the sound around a border (a frame of the
// file), before the letters.
func (s *spectrum) at(net *borderNet, border int) []float32 {
	b := min(max(border-s.start, 0), s.frames)
	out := s.hidden[b*borderHidden : (b+1)*borderHidden]
	if s.done[b] {
		return out
	}
	s.done[b] = true
	copy(out, net.bias)
	for p, pool := range pools {
		from, to := s.clip(b+pool[0]), s.clip(b+pool[1])
		if from == to { // beyond the ends: the outermost frame
			from, to = min(from, s.frames-1), min(from, s.frames-1)+1
		}
		for k := range borderBands {
			x := float32((s.sums[to*borderBands+k] - s.sums[from*borderBands+k]) / float64(to-from))
			weights := net.first[(p*borderBands+k)*borderHidden:][:borderHidden]
			for j, w := range weights {
				out[j] += x * w
			}
		}
	}
	return out
}

func (s *spectrum) clip(f int) int { return min(max(f, 0), s.frames) }

// score returns how likely a word with these letters begins at a border, as a
// logarithm without a constant.
func (net *borderNet) score(sound []float32, letters []float32) float64 {
	second := [borderSecond]float32(net.bias2)
	for j, v := range sound {
		if v += letters[j]; v > 0 {
			for k, w := range net.second[j*borderSecond:][:borderSecond] {
				second[k] += v * w
			}
		}
	}
	var out float64
	for k, v := range second {
		out += float64(max(v, 0) * net.last[k])
	}
	return out
}

// lettersOf sums up what the network makes of the letters around a border: the
// last two of the word before and the first two of the word.
func (net *borderNet) lettersOf(before, word string, sum []float32) {
	clear(sum)
	add := func(place, kind int) {
		for j, w := range net.letters[(place*letterKinds+kind)*borderHidden:][:borderHidden] {
			sum[j] += w
		}
	}
	last, first := solids(before), solids(word)
	switch n := len(last); n {
	case 0:
		add(0, letterKinds-2)
		add(1, letterKinds-1)
	case 1:
		add(0, letterKinds-2)
		add(1, kindOf(last[0]))
	default:
		add(0, kindOf(last[n-2]))
		add(1, kindOf(last[n-1]))
	}
	if len(first) > 0 {
		add(2, kindOf(first[0]))
	}
	if len(first) > 1 {
		add(3, kindOf(first[1]))
	} else {
		add(3, letterKinds-2)
	}
}

func solids(text string) []rune {
	var out []rune
	for _, r := range text {
		if IsSolid(r) {
			out = append(out, r)
		}
	}
	return out
}

// kindOf is 1 to 26 for a Latin letter, whatever its case and accents, else 0.
func kindOf(r rune) int {
	if r >= utf8.RuneSelf {
		r = []rune(norm.NFD.String(string(r)))[0]
	}
	switch {
	case 'a' <= r && r <= 'z':
		return int(r-'a') + 1
	case 'A' <= r && r <= 'Z':
		return int(r-'A') + 1
	}
	return 0
}
