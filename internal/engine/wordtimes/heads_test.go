package wordtimes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/internal/files/ggmlfile"
)

func TestPublishedAlignmentHeads(t *testing.T) {
	for s, heads := range published {
		seen := map[[2]int]bool{}
		for _, h := range heads {
			assert.False(t, seen[h], "%v twice in %v", h, s)
			seen[h] = true
			assert.Less(t, int32(h[0]), s.layers)
			assert.Less(t, int32(h[1]), s.heads)
		}
		assert.GreaterOrEqual(t, len(heads), 5, s)
	}
	assert.Equal(t, [][2]int{{3, 1}, {4, 2}, {4, 3}, {4, 7}, {5, 1}, {5, 2}, {5, 4}, {5, 6}},
		Published(ggmlfile.Header{TextLayers: 6, TextHeads: 8, Vocabulary: 51865}), "base")
	assert.Equal(t, [][2]int{{1, 0}, {2, 0}, {2, 5}, {3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}},
		Published(ggmlfile.Header{TextLayers: 4, TextHeads: 6, Vocabulary: 51864}), "tiny.en")
	assert.Nil(t, Published(ggmlfile.Header{TextLayers: 2, TextHeads: 20, Vocabulary: 51866}), "a distilled model")
}
