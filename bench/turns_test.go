package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turnCase is a case of testdata/turns.py with the figures of pyannote.metrics
// and, for a recording, of NIST's md-eval-22.
type turnCase struct {
	Recording             string
	Reference, Hypothesis []turnTuple
	Want                  map[string][]float64
	MDEval                map[string][]float64 `json:"md_eval"`
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

// compareTurns compares our figures with the figures of the cases, in all printed
// digits.
func compareTurns(t *testing.T, cases io.Reader) {
	t.Helper()
	n := 0
	for lines := bufio.NewScanner(cases); lines.Scan(); n++ {
		var c turnCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		c.compare(t, fmt.Sprintf("case %d", n+1))
	}
	assert.Positive(t, n)
}

// compare compares our figures with the referees', with and without a collar
// and overlapping speech.
func (c turnCase) compare(t *testing.T, name string) {
	t.Helper()
	for _, collar := range []float64{0, 0.25} {
		for option, skip := range map[string]bool{"False": false, "True": true} {
			d := ScoreTurns(speakerTurns(c.Reference), speakerTurns(c.Hypothesis), DEROptions{Collar: collar, SkipOverlap: skip})
			key := fmt.Sprintf("%g %s", collar, option)
			ours := []float64{d.Scored, d.Missed, d.FalseAlarm, d.Confusion, d.Rate(), d.jer()}
			require.Len(t, c.Want[key], len(ours), "%s, %s", name, key)
			for i, v := range ours {
				assert.InDelta(t, c.Want[key][i], v, 1e-8, "%s, %s, figure %d of pyannote.metrics", name, key, i)
			}
			if c.Recording == "" {
				continue
			}
			require.Len(t, c.MDEval[key], 4, "%s, %s", name, key)
			for i, want := range c.MDEval[key] {
				assert.InDelta(t, want, ours[i], 0.011, "%s, %s, figure %d of md-eval, which prints two digits", name, key, i)
			}
		}
	}
}

// TestRecordedTurns compares with figures that pyannote.metrics printed.
func TestRecordedTurns(t *testing.T) {
	f, err := os.Open("testdata/turns.jsonl")
	require.NoError(t, err)
	defer f.Close()
	compareTurns(t, f)
}

// TestRecordingTurns compares our figures with pyannote.metrics and
// md-eval-22 on otograph's turns in recordings of people and of synthetic voices. Most references are in the folder OTOGRAPH_SHARED.
func TestRecordingTurns(t *testing.T) {
	f, err := os.Open("testdata/recordings.jsonl")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c turnCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		t.Run(c.Recording, func(t *testing.T) {
			folder := filepath.Join(os.Getenv("OTOGRAPH_SHARED"), "testdata")
			if c.Recording == "diarize/conv3" {
				folder = "../diarize/testdata"
				c.Recording = "conv3"
			} else if os.Getenv("OTOGRAPH_SHARED") == "" {
				t.Skip("OTOGRAPH_SHARED is not set: no reference")
			}
			rttm, err := os.Open(filepath.Join(folder, c.Recording+".rttm"))
			require.NoError(t, err)
			defer rttm.Close()
			reference, err := ReadRTTM(rttm)
			require.NoError(t, err)
			for _, x := range reference {
				c.Reference = append(c.Reference, turnTuple(x))
			}
			c.compare(t, c.Recording)
		})
	}
	assert.Equal(t, 16, n)
}
