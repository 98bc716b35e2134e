package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turnCase is a case of testdata/turns.py with the figures of pyannote.metrics.
type turnCase struct {
	Reference, Hypothesis []turnTuple
	Want                  map[string][6]float64
}

type turnTuple SpeakerTurn

func (t *turnTuple) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&t.Start, &t.End, &t.Speaker})
}

func speakerTurns(list []turnTuple) (out []SpeakerTurn) {
	for _, t := range list {
		out = append(out, SpeakerTurn(t))
	}
	return out
}

// compareTurns compares our figures with the cases' in all printed digits.
func compareTurns(t *testing.T, cases io.Reader) {
	t.Helper()
	n := 0
	for lines := bufio.NewScanner(cases); lines.Scan(); n++ {
		var c turnCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		for _, collar := range []float64{0, 0.25} {
			for option, skip := range map[string]bool{"False": false, "True": true} {
				d := ScoreTurns(speakerTurns(c.Reference), speakerTurns(c.Hypothesis), DEROptions{Collar: collar, SkipOverlap: skip})
				key := fmt.Sprintf("%g %s", collar, option)
				for i, v := range []float64{d.Scored, d.Missed, d.FalseAlarm, d.Confusion, d.Rate(), d.JER()} {
					assert.InDelta(t, c.Want[key][i], v, 1e-9, "case %d, %s, figure %d", n+1, key, i)
				}
			}
		}
	}
	assert.Positive(t, n)
}

// TestRecordedTurns compares with figures that pyannote.metrics printed.
func TestRecordedTurns(t *testing.T) {
	f, err := os.Open("testdata/turns.jsonl")
	require.NoError(t, err)
	defer f.Close()
	compareTurns(t, f)
}
