package wordtimes

import (
	_ "embed" // the network's weights
	"encoding/binary"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/internal/engine/dsp"
)

// The network that scores the border before a word, every 10 ms, from the
// spectrum around it and the letters on both sides. It was trained on
// synthesizers' own word times (tools/training/README.md).
const (
	bankBands   = 24 // of the filter bank, 10 ms apart
	poolCount   = 15
	inputs      = poolCount * bankBands
	hidden      = 48
	hidden2     = 24
	letterKinds = 29 // other letter, a … z, no letter before or after, no word before
)

const (
	// EarliestBorder is the first candidate border of a word, in 10 ms frames
	// from the middle of the row of a CTC model's first token of the word.
	EarliestBorder = -56
	// LatestBorder is the last candidate border.
	LatestBorder = 18
	// BorderCount is the number of candidate borders.
	BorderCount = LatestBorder - EarliestBorder + 1
	// FarthestWord is the frames after which the previous word does not count.
	FarthestWord = 60
)

// pools are the ends of the stretches of frames around a border whose means the
// network gets.
var pools = [poolCount + 1]int{-16, -11, -7, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 10, 16}

//go:embed border.f32
var weights []byte

// BorderNet holds the network's weights.
type BorderNet struct {
	first   []float32 // inputs x hidden
	letters []float32 // 4 x kinds x hidden
	bias    []float32 // hidden
	second  []float32 // hidden x hidden2
	bias2   []float32
	last    []float32 // hidden2
	// Lag scores the delay from the border to a CTC model's token (BorderCount
	// numbers), for words after another word and for words after a pause.
	Lag [2][]float32
	// Near scores the distance to the last token of the previous word, from
	// -FarthestWord to FarthestWord.
	Near []float32
}

// Borders returns the network.
var Borders = sync.OnceValue(func() *BorderNet {
	all := make([]float32, len(weights)/4)
	_, _ = binary.Decode(weights, binary.LittleEndian, all)
	take := func(n int) []float32 {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	return &BorderNet{
		first: take(inputs * hidden), letters: take(4 * letterKinds * hidden), bias: take(hidden),
		second: take(hidden * hidden2), bias2: take(hidden2), last: take(hidden2),
		Lag: [2][]float32{take(BorderCount), take(BorderCount)}, Near: take(2*FarthestWord + 1),
	}
})

// BorderSound is a stretch of sound as input of the network: cumulative sums of the
// normalized bands up to each frame.
type BorderSound struct {
	start  int // of the stretch, in frames of the file
	frames int
	sums   []float64
	units  []float32 // output of the first layer for each border, computed on first use
	done   []bool
}

// margin is the number of frames around a stretch that the network also reads.
const margin = 80

// NewBorderSound returns a stretch of the file (frames of 10 ms) with a margin around
// it. Bands are relative to the mean of the speech in it.
func NewBorderSound(pcm *audio.PCM, from, to int, speech []audio.Span) *BorderSound {
	const hop = audio.SampleRate / 100
	from, to = max(from-margin, 0), min(to+margin, pcm.Len()/hop)
	s := &BorderSound{start: from, frames: max(to-from, 0)}
	rows := BorderBands(pcm.Samples(from*hop, from*hop+s.frames*hop))
	s.frames = len(rows) / bankBands
	var mean [bankBands]float64
	counted := 0.0
	for _, sp := range speech {
		a, b := max(sp.Start/hop-from, 0), min(sp.End/hop-from, s.frames)
		for f := a; f < b; f++ {
			for k := range mean {
				mean[k] += float64(rows[f*bankBands+k])
			}
			counted++
		}
	}
	s.sums = make([]float64, (s.frames+1)*bankBands)
	for f := range s.frames {
		for k := range mean {
			v := (float64(rows[f*bankBands+k]) - mean[k]/max(counted, 1)) / 3
			s.sums[(f+1)*bankBands+k] = s.sums[f*bankBands+k] + min(max(v, -4), 4)
		}
	}
	s.units = make([]float32, (s.frames+1)*hidden)
	s.done = make([]bool, s.frames+1)
	return s
}

// BorderBands returns the logarithms of the mel bands every 10 ms.
func BorderBands(samples []float32) []float32 {
	opt := dsp.DefaultFbankOptions()
	opt.Bands, opt.SnipEdges = bankBands, false
	bank := dsp.NewFbank(opt)
	rows := make([]float32, bank.Frames(len(samples))*bankBands)
	bank.Compute(rows, samples)
	return rows
}

// at returns the first layer's output for the sound around a border (a frame of
// the file), before the letters are added.
func (s *BorderSound) at(net *BorderNet, border int) []float32 {
	b := min(max(border-s.start, 0), s.frames)
	out := s.units[b*hidden : (b+1)*hidden]
	if s.done[b] {
		return out
	}
	s.done[b] = true
	copy(out, net.bias)
	for p := range poolCount {
		from, to := s.clip(b+pools[p]), s.clip(b+pools[p+1])
		if from == to { // outside the sound: take the outermost frame
			from, to = min(from, s.frames-1), min(from, s.frames-1)+1
		}
		for k := range bankBands {
			x := float32((s.sums[to*bankBands+k] - s.sums[from*bankBands+k]) / float64(to-from))
			weights := net.first[(p*bankBands+k)*hidden:][:hidden]
			for j, w := range weights {
				out[j] += x * w
			}
		}
	}
	return out
}

func (s *BorderSound) clip(f int) int { return min(max(f, 0), s.frames) }

// Letters is the first layer's output for the letters around a border.
type Letters [hidden]float32

// Score returns the log likelihood, up to a constant, that a word begins at a
// border (a frame of the file) with these letters around it.
func (net *BorderNet) Score(s *BorderSound, border int, letters *Letters) float64 {
	sum := [hidden2]float32(net.bias2)
	for j, v := range s.at(net, border) {
		if v += letters[j]; v > 0 {
			for k, w := range net.second[j*hidden2:][:hidden2] {
				sum[k] += v * w
			}
		}
	}
	var out float64
	for k, v := range sum {
		out += float64(max(v, 0) * net.last[k])
	}
	return out
}

// Letters returns the first layer's output for the letters around a border: the
// last two of the previous word ("" for none) and the first two of the word.
func (net *BorderNet) Letters(before, word string) (sum Letters) {
	const noLetter, noWord = letterKinds - 2, letterKinds - 1
	// kind returns 1 to 26 for a Latin letter of any case or accent, 0 for another
	// letter or digit, none outside the text.
	kind := func(text []rune, at, none int) int {
		if at < 0 || at >= len(text) {
			return none
		}
		r := text[at]
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
	last, first := solids(before), solids(word)
	for place, k := range [4]int{kind(last, len(last)-2, noLetter), kind(last, len(last)-1, noWord), kind(first, 0, 0), kind(first, 1, noLetter)} {
		for j, w := range net.letters[(place*letterKinds+k)*hidden:][:hidden] {
			sum[j] += w
		}
	}
	return sum
}

func solids(text string) []rune {
	return slices.DeleteFunc([]rune(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}
