//go:build referee

package scores

import (
	"testing"

	"github.com/otograph/otograph/internal/test/outside"
)

// TestReferee scores 500 new meetings with our code, MeetEval and jiwer.
func TestReferee(t *testing.T) {
	for score, n := range compare(t, outside.Referee(t, "testdata/meetings.py", "1", "500")) {
		t.Logf("%s: %d meetings equal", score, n)
	}
}
