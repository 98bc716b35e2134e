package wordtimes

import (
	"cmp"
	"context"
	"slices"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

// shape identifies a published model.
type shape struct{ layers, heads, vocabulary int32 }

// The vocabularies of the published models.
const englishOnly, multilingual, cantonese = 51864, 51865, 51866

// published holds the alignment heads that OpenAI publishes, those whose
// attention follows the sound best, as pairs of layer and head, counted from 0.
// large-v1 has large-v2's shape.
var published = map[shape][][2]int{
	{4, 6, englishOnly}:    {{1, 0}, {2, 0}, {2, 5}, {3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}},                                                                                                                                                              // tiny.en
	{4, 6, multilingual}:   {{2, 2}, {3, 0}, {3, 2}, {3, 3}, {3, 4}, {3, 5}},                                                                                                                                                                              // tiny
	{6, 8, englishOnly}:    {{3, 3}, {4, 7}, {5, 1}, {5, 5}, {5, 7}},                                                                                                                                                                                      // base.en
	{6, 8, multilingual}:   {{3, 1}, {4, 2}, {4, 3}, {4, 7}, {5, 1}, {5, 2}, {5, 4}, {5, 6}},                                                                                                                                                              // base
	{12, 12, englishOnly}:  {{6, 6}, {7, 0}, {7, 3}, {7, 8}, {8, 2}, {8, 5}, {8, 7}, {9, 0}, {9, 4}, {9, 8}, {9, 10}, {10, 0}, {10, 1}, {10, 2}, {10, 3}, {10, 6}, {10, 11}, {11, 2}, {11, 4}},                                                            // small.en
	{12, 12, multilingual}: {{5, 3}, {5, 9}, {8, 0}, {8, 4}, {8, 7}, {8, 8}, {9, 0}, {9, 7}, {9, 9}, {10, 5}},                                                                                                                                             // small
	{24, 16, englishOnly}:  {{11, 4}, {14, 1}, {14, 12}, {14, 14}, {15, 4}, {16, 0}, {16, 4}, {16, 9}, {17, 12}, {17, 14}, {18, 7}, {18, 10}, {18, 15}, {20, 0}, {20, 3}, {20, 9}, {20, 14}, {21, 12}},                                                    // medium.en
	{24, 16, multilingual}: {{13, 15}, {15, 4}, {15, 15}, {16, 1}, {20, 0}, {23, 4}},                                                                                                                                                                      // medium
	{32, 20, multilingual}: {{10, 12}, {13, 17}, {16, 11}, {16, 12}, {16, 13}, {17, 15}, {17, 16}, {18, 4}, {18, 11}, {18, 19}, {19, 11}, {21, 2}, {21, 3}, {22, 3}, {22, 9}, {22, 12}, {23, 5}, {23, 7}, {23, 13}, {25, 5}, {26, 1}, {26, 12}, {27, 15}}, // large-v2
	{32, 20, cantonese}:    {{7, 0}, {10, 17}, {12, 18}, {13, 12}, {16, 1}, {17, 14}, {19, 11}, {21, 4}, {24, 1}, {25, 6}},                                                                                                                                // large-v3
	{4, 20, cantonese}:     {{2, 4}, {2, 11}, {3, 3}, {3, 6}, {3, 11}, {3, 14}},                                                                                                                                                                           // large-v3-turbo
}

// Published returns a published model's alignment heads by its dimensions.
func Published(h ggmlfile.Header) [][2]int {
	return slices.Clone(published[shape{h.TextLayers, h.TextHeads, h.Vocabulary}])
}

// mostHeads is the maximum number of chosen heads, typical of published lists.
// usualStrain is the usual cost of durations and skipped speech per word
// (docs/measurements/word-times.md).
const mostHeads, usualStrain = 8, 0.7

// Choose finds the alignment heads of an unpublished decoder from a window with
// plenty of text: the heads that jump to a word at its audible start. Only
// heads of the last half of the layers are tried, as Whisper does without a
// list. scores returns the scores of all heads of a layer, as in Input;
// in.Scores is not used. Choose returns at most eight pairs of layer and head,
// best first, or none if no head follows the sound. If ctx ends, the error is
// its cause.
func Choose(ctx context.Context, in Input, layers int, scores func(layer int) ([][][]float32, error)) (pairs [][2]int, err error) {
	type candidate struct {
		head [2]int // layer and head
		fit  float64
	}
	s := newSharpener(in)
	if s == nil {
		return nil, nil
	}
	var all []candidate
	for layer := layers / 2; layer < layers; layer++ {
		heads, err := scores(layer)
		if err != nil {
			return nil, err
		}
		for h := range heads {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			s.place(warp(attention(heads[h:h+1], in.Prefix, positions(in, heads))))
			s.score()
			fit, _ := s.best(len(in.Words)-1, len(s.clock.frames))
			all = append(all, candidate{[2]int{layer, h}, fit + usualStrain*float64(len(in.Words))})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.fit, a.fit) })
	for _, c := range all[:min(len(all), mostHeads)] {
		if c.fit <= 0 || c.fit < all[0].fit/3 {
			break
		}
		pairs = append(pairs, c.head)
	}
	return pairs, nil
}
