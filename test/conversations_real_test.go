//go:build real

package test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/bench"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
	"github.com/otograph/otograph/models/published"
)

const conversations = "../testdata/conversations/"

// TestRealConversations measures the embedded networks, with text by Whisper
// base, on the conversations that no rule was chosen on (figure.jsonl): the
// diarization error without a collar, overlaps scored, the numbers of speakers
// and the words that have another speaker than the one who speaks. Recordings
// of two tracks are mixed; of two people they are transcribed by track as well.
func TestRealConversations(t *testing.T) {
	items, err := bench.Load(conversations + "figure.jsonl")
	require.NoError(t, err)
	require.Len(t, items, 12)
	set, err := library.Load{
		Files:    map[models.Role]string{models.RoleStandard: pulled(t, "whisper-base-q8_0", "*.bin")},
		Fallback: published.Models(),
	}.Open()
	require.NoError(t, err)
	p, err := otograph.Open(set)
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	var mixed, tracks spoken
	for _, item := range items {
		mixed.add(t, p, item, otograph.ChannelsMix)
		if item.Keys["tracks"] == "2" && *item.Speakers == 2 {
			tracks.add(t, p, item, otograph.ChannelsSplit)
		}
	}
	t.Logf("all: %s", mixed)
	t.Logf("two people on two tracks: %s", tracks)
	assert.Less(t, mixed.rate(), 0.28)
	assert.GreaterOrEqual(t, mixed.right, 5)
	assert.Less(t, tracks.rate(), 0.2)
}

// spoken sums the errors of conversations.
type spoken struct {
	scored, wrong     float64 // seconds of speech
	recordings, right int     // right: the number of speakers
	words, others     int     // others: words of another speaker
}

func (s spoken) rate() float64 { return s.wrong / s.scored }

func (s spoken) String() string {
	return fmt.Sprintf("error %.1f %%, number of speakers right in %d of %d, %d of %d words have another speaker (%.1f %%)",
		100*s.rate(), s.right, s.recordings, s.others, s.words, 100*float64(s.others)/float64(s.words))
}

// add transcribes a conversation and compares it with its turns.
func (s *spoken) add(t *testing.T, p *otograph.Pipeline, item bench.Item, channels otograph.Channels) {
	t.Helper()
	res, err := p.Run(t.Context(), otograph.File(item.Path), otograph.Options{
		ASRLanguage: &item.Language, EnableAudioEvents: new(false), TimestampLevel: new(otograph.TimestampLevel(otograph.TimestampWord)),
	}, otograph.RunOptions{Channels: channels})
	require.NoError(t, err)
	var turns []bench.SpeakerTurn
	for _, d := range res.DiarizeSegments {
		turns = append(turns, bench.SpeakerTurn{Start: d.Start, End: d.End, Speaker: d.Speaker})
	}
	der := bench.ScoreTurns(item.Turns, turns, bench.DEROptions{})
	one := spoken{scored: der.Scored, wrong: der.Missed + der.FalseAlarm + der.Confusion, recordings: 1}
	if res.NumSpeakers == *item.Speakers {
		one.right = 1
	}
	for _, segment := range res.Segments {
		for _, w := range segment.Words {
			middle := (w.Start + w.End) / 2
			speaks := slices.DeleteFunc(slices.Clone(item.Turns), func(turn bench.SpeakerTurn) bool { return middle < turn.Start || middle >= turn.End })
			if len(speaks) == 0 { // between two turns any speaker is right
				continue
			}
			one.words++
			if !slices.ContainsFunc(speaks, func(turn bench.SpeakerTurn) bool { return turn.Speaker == der.Mapping[segment.Speaker] }) {
				one.others++
			}
		}
	}
	t.Logf("%s (%s): %d speakers, found %d; %s", item.Name, channels, *item.Speakers, res.NumSpeakers, one)
	s.scored, s.wrong, s.recordings, s.right = s.scored+one.scored, s.wrong+one.wrong, s.recordings+1, s.right+one.right
	s.words, s.others = s.words+one.words, s.others+one.others
}
