//go:build referee

package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/otograph/otograph/internal/test/outside"
)

// TestReferee compares the scores of 500 random recordings with
// pyannote.metrics, and of the recordings in the folder OTOGRAPH_SHARED also
// with md-eval-22, whose path is OTOGRAPH_MD_EVAL (Debian's package sctk has
// it).
func TestReferee(t *testing.T) {
	compareTurns(t, outside.Referee(t, "testdata/turns.py", "1", "500"))
	shared, program := os.Getenv("OTOGRAPH_SHARED"), os.Getenv("OTOGRAPH_MD_EVAL")
	if shared == "" || program == "" {
		t.Skip("OTOGRAPH_SHARED or OTOGRAPH_MD_EVAL is not set: random recordings only")
	}
	compareTurns(t, outside.Referee(t, "testdata/turns.py", "testdata/recordings.jsonl", filepath.Join(shared, "testdata"), program))
}
