// Command confidence compares a recognizer's token probabilities with the
// errors in its text, and fits the calibration of its model
// (models.Calibration):
//
//	go run -C tools ./wordset -seed 501 -n 120 -sentences 4 -noise -,20,10,5,0 -o FIT
//	go run -C tools ./wordset -seed 502 -n 96 -sentences 4 -noise -,20,10,5,0 -o OTHER
//	go run -C tools ./confidence -tier optimized -fit FIT/manifest.jsonl OTHER/manifest.jsonl
//
// Manifests need the times of words. It prints the two numbers of the
// calibration and, for the other recordings, the expected calibration error:
// the mean error of a segment's confidence in ten bins of equal width, weighted
// by words. Without -fit it evaluates the models' present calibration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/tools/internal/checkout"
)

func main() {
	log.SetFlags(0)
	fit := flag.String("fit", "", "manifest of the recordings to fit to")
	tier := flag.String("tier", "optimized", "optimized or standard")
	folder := flag.String("models", "", "model folder; default: the demo models")
	flag.Parse()
	if flag.NArg() != 1 || (*tier != "optimized" && *tier != "standard") {
		log.Fatal("confidence: usage: confidence -tier optimized|standard [-fit MANIFEST] [-models DIR] MANIFEST")
	}
	if err := run(*fit, *tier, *folder, flag.Arg(0)); err != nil {
		log.Fatal("confidence: ", err)
	}
}

func run(fit, tier, folder, manifest string) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	set := demo.Models()
	if folder != "" {
		var err error
		if set, err = library.OpenDir(folder); err != nil {
			return err
		}
	}
	role := models.RoleStandard
	if tier == "optimized" {
		role = models.RoleOptimized
	}
	m, err := set.Need(role)
	if err != nil {
		return err
	}
	calibration := m.Calibration
	if fit != "" {
		said, err := listen(set, tier, fit)
		if err != nil {
			return err
		}
		c := platt(said)
		fmt.Printf("%s: slope %.3f, offset %.3f, from %d segments\n", m.Name, c.Slope, c.Offset, len(said))
		calibration = &c
	}
	if calibration == nil {
		return fmt.Errorf("model %s has no calibration: give -fit", m.Name)
	}
	said, err := listen(set, tier, manifest)
	if err != nil {
		return err
	}
	raw := func(s segment) float64 { return math.Exp(s.mean) }
	confidence := func(s segment) float64 { return calibration.Confidence(s.mean) }
	fmt.Printf("%d segments: expected calibration error %.1f %% of the token probabilities, %.1f %% of the confidences\n",
		len(said), 100*calibrationError(said, raw), 100*calibrationError(said, confidence))
	for _, b := range bins(said, confidence) {
		if b.words > 0 {
			fmt.Printf("  confidence %.2f: right %.2f (%.0f words)\n", b.expected/b.words, b.right/b.words, b.words)
		}
	}
	return nil
}

// segment is one segment of the transcript, compared with the words spoken in
// its time.
type segment struct {
	mean  float64 // mean of the logarithms of the tokens' probabilities
	right float64 // share of words
	words float64
}

// listen transcribes the recordings of a manifest.
func listen(set *models.Set, tier, manifest string) ([]segment, error) {
	items, err := bench.Load(manifest)
	if err != nil {
		return nil, err
	}
	p, err := otograph.Open(set, otograph.Config{Cascade: new(0.0)})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	off := false
	var all []segment
	for _, it := range items {
		if it.Words == nil {
			return nil, fmt.Errorf("%s: %w", it.Name, errors.New("the manifest has no times of words"))
		}
		opt := otograph.Options{Optimize: new(tier == "optimized"), ASRLanguage: &it.Language, EnableDiarize: &off, EnableAudioEvents: &off}
		res, err := p.Run(context.Background(), otograph.File(it.Path), opt)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.Name, err)
		}
		all = append(all, judge(it, res)...)
	}
	return all, nil
}

// judge counts the correct words of each segment. A word of the reference
// belongs to the segment that contains its middle, or to the nearest one.
func judge(it bench.Item, res *otograph.Result) []segment {
	if len(res.Segments) == 0 {
		return nil
	}
	spoken := make([]string, len(res.Segments))
	for _, w := range it.Words {
		at, best := 0, math.Inf(1)
		middle := (w.Start + w.End) / 2
		for i, s := range res.Segments {
			if off := max(s.Start-middle, middle-s.End, 0); off < best {
				at, best = i, off
			}
		}
		spoken[at] += " " + w.Text
	}
	out := make([]segment, 0, len(res.Segments))
	for i, s := range res.Segments {
		found := bench.Units(it.Language, s.Text)
		e := bench.CompareWords(bench.Units(it.Language, spoken[i]), found)
		words := float64(max(e.Reference, len(found)))
		if words > 0 && s.Measures != nil {
			out = append(out, segment{mean: s.Measures.AvgLogProb, right: 1 - float64(e.Errors())/words, words: words})
		}
	}
	return out
}

// platt fits the calibration by Newton's method on the likelihood of the words.
func platt(said []segment) models.Calibration {
	c := models.Calibration{Slope: 1}
	for range 50 {
		var ga, gb, haa, hab, hbb float64
		for _, s := range said {
			p, x := c.Confidence(s.mean), models.LogOdds(s.mean)
			d, v := s.words*(s.right-p), s.words*p*(1-p)
			ga, gb = ga+d, gb+d*x
			haa, hab, hbb = haa+v, hab+v*x, hbb+v*x*x
		}
		det := haa*hbb - hab*hab
		if det < 1e-12 {
			break
		}
		c.Offset += (hbb*ga - hab*gb) / det
		c.Slope += (haa*gb - hab*ga) / det
	}
	return c
}

// bin is a tenth of the range of confidences.
type bin struct{ words, expected, right float64 }

func bins(said []segment, confidence func(segment) float64) [10]bin {
	var out [10]bin
	for _, s := range said {
		p := confidence(s)
		b := &out[min(int(p*10), 9)]
		b.words += s.words
		b.expected += s.words * p
		b.right += s.words * s.right
	}
	return out
}

func calibrationError(said []segment, confidence func(segment) float64) float64 {
	var off, words float64
	for _, b := range bins(said, confidence) {
		off += math.Abs(b.expected - b.right)
		words += b.words
	}
	return off / max(words, 1)
}
