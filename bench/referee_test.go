//go:build referee

package bench

import (
	"testing"

	"github.com/otograph/otograph/internal/tooltest"
)

// TestReferee compares the scores of 500 random recordings with
// pyannote.metrics.
func TestReferee(t *testing.T) {
	compareTurns(t, tooltest.Referee(t, "testdata/turns.py", "1", "500"))
}
