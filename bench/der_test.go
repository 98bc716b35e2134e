package bench

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otograph/otograph/bench/internal/datasets"
)

func TestScoreTurnsKnownCases(t *testing.T) {
	ab := []SpeakerTurn{talk(0, 10, "A"), talk(10, 20, "B")}
	for _, c := range []struct {
		name                             string
		ref, hyp                         []SpeakerTurn
		opt                              DEROptions
		scored, missed, alarm, confusion float64
	}{
		{"equal under other names", ab, []SpeakerTurn{talk(0, 10, "x"), talk(10, 20, "y")}, DEROptions{}, 20, 0, 0, 0},
		{"border two seconds late", ab, []SpeakerTurn{talk(0, 12, "x"), talk(12, 20, "y")}, DEROptions{}, 20, 0, 0, 2},
		{"the same, collar of one second", ab, []SpeakerTurn{talk(0, 12, "x"), talk(12, 20, "y")}, DEROptions{Collar: 1}, 16, 0, 0, 1},
		{"one speaker for both", ab, []SpeakerTurn{talk(0, 20, "x")}, DEROptions{}, 20, 0, 0, 10},
		{"nothing found", ab, nil, DEROptions{}, 20, 20, 0, 0},
		{"no speech", nil, []SpeakerTurn{talk(1, 3, "x")}, DEROptions{}, 0, 0, 2, 0},
		{"speech before and after", []SpeakerTurn{talk(5, 10, "A")}, []SpeakerTurn{talk(4, 12, "x")}, DEROptions{}, 5, 0, 3, 0},
		{"false alarm inside the collar", []SpeakerTurn{talk(5, 10, "A")}, []SpeakerTurn{talk(4.8, 10.2, "x")}, DEROptions{Collar: 0.25}, 4.5, 0, 0, 0},
		{"overlap, one of two found", []SpeakerTurn{talk(0, 10, "A"), talk(5, 10, "B")}, []SpeakerTurn{talk(0, 10, "x")}, DEROptions{}, 15, 5, 0, 0},
		{"overlap not scored", []SpeakerTurn{talk(0, 10, "A"), talk(5, 10, "B")}, []SpeakerTurn{talk(0, 10, "x")}, DEROptions{SkipOverlap: true}, 5, 0, 0, 0},
		{"a third speaker", ab, []SpeakerTurn{talk(0, 10, "x"), talk(10, 16, "y"), talk(16, 20, "z")}, DEROptions{}, 20, 0, 0, 4},
		// Greedy mapping would pair x with A (6 s) and leave B with y (0 s): 6
		// right; the best is 5 + 5.
		{"mapping needs the optimum", []SpeakerTurn{talk(0, 11, "A"), talk(11, 16, "B")}, []SpeakerTurn{talk(0, 6, "x"), talk(11, 16, "x"), talk(6, 11, "y")}, DEROptions{}, 16, 0, 0, 6},
		{"one speaker's turns overlap themselves", []SpeakerTurn{talk(0, 6, "A"), talk(4, 10, "A"), talk(3, 3, "B")}, []SpeakerTurn{talk(0, 10, "x")}, DEROptions{}, 10, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := ScoreTurns(c.ref, c.hyp, c.opt)
			assert.InDelta(t, c.scored, d.Scored, 1e-9, "scored")
			assert.InDelta(t, c.missed, d.Missed, 1e-9, "missed")
			assert.InDelta(t, c.alarm, d.FalseAlarm, 1e-9, "false alarm")
			assert.InDelta(t, c.confusion, d.Confusion, 1e-9, "confusion")
		})
	}
}

func TestRateWithoutScoredSpeech(t *testing.T) {
	assert.Equal(t, 0.3, DER{Scored: 10, Missed: 1, FalseAlarm: 1, Confusion: 1}.Rate())
	assert.Equal(t, 0.0, DER{}.Rate())
	assert.Equal(t, 1.0, DER{FalseAlarm: 1}.Rate(), "as in pyannote.metrics")
	assert.Equal(t, 0.25, DER{Scored: 10, Missed: 5}.add(DER{Scored: 10}).Rate())
}

func TestMappingHasSpeakersNames(t *testing.T) {
	d := ScoreTurns([]SpeakerTurn{talk(0, 5, "ann"), talk(5, 9, "bob")}, []SpeakerTurn{talk(0, 4, "S0"), talk(5, 9, "S1"), talk(9, 10, "S2")}, DEROptions{})
	assert.Equal(t, map[string]string{"S0": "ann", "S1": "bob"}, d.Mapping)
}

func talk(start, end float64, speaker string) SpeakerTurn {
	return SpeakerTurn{Start: start, End: end, Speaker: speaker}
}

func drawTurns(t *rapid.T, label string) []SpeakerTurn {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 1))
	var turns []SpeakerTurn
	for range r.IntN(12) {
		start := float64(r.IntN(100)) / 4
		turns = append(turns, talk(start, start+float64(r.IntN(20))/4, string(rune('A'+r.IntN(4)))))
	}
	return turns
}

// TestScoreTurnsByFrames compares with counting on a grid of quarter seconds
// under every mapping.
func TestScoreTurnsByFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, hyp := drawTurns(t, "reference"), drawTurns(t, "hypothesis")
		at := func(turns []SpeakerTurn, i int) (who [4]bool) {
			for _, x := range turns {
				if m := float64(i)/4 + 0.125; x.Start < m && m < x.End {
					who[x.Speaker[0]-'A'] = true
				}
			}
			return who
		}
		count := func(w [4]bool) (n int) {
			for _, b := range w {
				if b {
					n++
				}
			}
			return n
		}
		best := math.Inf(1)
		var scored float64
		for p := range 256 { // all mappings of four to four; those that are not one to one are skipped
			m := [4]int{p & 3, p >> 2 & 3, p >> 4 & 3, p >> 6 & 3}
			if m[0] == m[1] || m[0] == m[2] || m[0] == m[3] || m[1] == m[2] || m[1] == m[3] || m[2] == m[3] {
				continue
			}
			var wrong float64
			scored = 0
			for i := range 140 {
				r, h := at(ref, i), at(hyp, i)
				correct := 0
				for s := range 4 {
					if h[s] && r[m[s]] {
						correct++
					}
				}
				scored += float64(count(r)) / 4
				wrong += float64(max(count(r), count(h))-correct) / 4
			}
			best = min(best, wrong)
		}
		d := ScoreTurns(ref, hyp, DEROptions{})
		if got := d.Missed + d.FalseAlarm + d.Confusion; math.Abs(got-best) > 1e-9 || math.Abs(d.Scored-scored) > 1e-9 {
			t.Fatalf("expected %v of %v s wrong, got %v of %v", best, scored, got, d.Scored)
		}
		if self := ScoreTurns(ref, ref, DEROptions{Collar: 0.25}); self.Rate() != 0 {
			t.Fatalf("a reference against itself: %v", self)
		}
	})
}

func TestReadRTTM(t *testing.T) {
	turns, err := ReadRTTM(strings.NewReader(";; made up\nSPKR-INFO a 1 <NA> <NA> <NA> unknown ann <NA>\n\nSPEAKER a 1 0.64 8.11 <NA> <NA> ann <NA> <NA>\nSPEAKER b 1 1 2 <NA> <NA> bob <NA> <NA>\r\n"))
	require.NoError(t, err)
	assert.Equal(t, []SpeakerTurn{talk(0.64, 8.75, "ann"), talk(1, 3, "bob")}, turns)
	for _, bad := range []string{"SPEAKER a 1 0.64", "SPEAKER a 1 x 1 <NA> <NA> ann", "SPEAKER a 1 1 NaN <NA> <NA> ann", "SPEAKER a 1 -1 1 <NA> <NA> ann", "SPEAKER a 1 1 Inf <NA> <NA> ann"} {
		_, err := ReadRTTM(strings.NewReader("\n" + bad + "\n"))
		require.ErrorIs(t, err, datasets.ErrRTTM, bad)
		assert.ErrorContains(t, err, "line 2")
	}
}

func FuzzReadRTTM(f *testing.F) {
	f.Add("SPEAKER conv1 1 0.640 8.110 <NA> <NA> spk2 <NA> <NA>\n")
	f.Add(";; x\nSPEAKER a 1 1e3 2 <NA> <NA> b")
	f.Fuzz(func(t *testing.T, text string) {
		turns, err := ReadRTTM(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, datasets.ErrRTTM)
			return
		}
		if len(turns) > 50 {
			turns = turns[:50]
		}
		assert.Zero(t, ScoreTurns(turns, turns, DEROptions{Collar: 0.25}).Rate())
	})
}

// TestScoreTurnsOnRealReference reads a meeting's reference, with overlaps.
func TestScoreTurnsOnRealReference(t *testing.T) {
	folder := os.Getenv("OTOGRAPH_SHARED")
	if folder == "" {
		t.Skip("OTOGRAPH_SHARED is not set: no recordings with references")
	}
	f, err := os.Open(folder + "/testdata/real/ami_tst00.rttm")
	require.NoError(t, err)
	defer f.Close()
	turns, err := ReadRTTM(f)
	require.NoError(t, err)
	require.NotEmpty(t, turns)
	assert.Zero(t, ScoreTurns(turns, turns, DEROptions{}).Rate())
	one := make([]SpeakerTurn, len(turns))
	for i, x := range turns {
		one[i] = talk(x.Start, x.End, "one")
	}
	d := ScoreTurns(turns, one, DEROptions{})
	assert.Positive(t, d.Confusion)
	assert.Positive(t, d.Missed, "overlap of several people")
	assert.Zero(t, d.FalseAlarm)
}
