package otograph_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/bench"
)

// call returns a stereo call of the first two voices of a conversation. The
// second channel begins a second early, so that the voices overlap. Each voice
// is also in the other channel, at bleed times its level and slightly delayed,
// and soft noise is in both. It ends in a pause, after 38 s or, in the short form, 23.
func call(t testing.TB, bleed float32) (samples []float32, truth []bench.SpeakerTurn) {
	t.Helper()
	pcm, err := audio.Open(t.Context(), otograph.File("diarize/testdata/conv3.flac"), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	f, err := os.Open("diarize/testdata/conv3.rttm")
	require.NoError(t, err)
	defer f.Close()
	turns, err := bench.ReadRTTM(f)
	require.NoError(t, err)
	const early, late = 1.0, 40 // seconds; samples
	length := 38 * audio.SampleRate
	if testing.Short() {
		length = 23 * audio.SampleRate
	}
	sides := [2][]float32{make([]float32, length), make([]float32, length)}
	var names []string
	for _, turn := range turns {
		channel := slices.Index(names, turn.Speaker)
		if channel < 0 {
			if channel = len(names); channel > 1 {
				continue
			}
			names = append(names, turn.Speaker)
		}
		shift := early * float64(channel)
		from, to := int(turn.Start*audio.SampleRate), int(turn.End*audio.SampleRate)
		if to > length {
			break
		}
		copy(sides[channel][from-int(shift*audio.SampleRate):], pcm.Samples(from, to))
		truth = append(truth, bench.SpeakerTurn{Start: turn.Start - shift, End: turn.End - shift, Speaker: turn.Speaker})
	}
	require.Len(t, names, 2)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range sides[0] {
		for c := range sides {
			x := sides[c][i] + float32(1e-4*noise.NormFloat64())
			if i >= late {
				x += bleed * sides[1-c][i-late]
			}
			samples = append(samples, x)
		}
	}
	return samples, truth
}

// joined merges a voice's turns across pauses of at most 0.35 s, because the
// conversation's RTTM splits turns at such pauses.
func joined(turns []bench.SpeakerTurn) (out []bench.SpeakerTurn) {
	last := map[string]int{}
	for _, turn := range turns {
		if i, ok := last[turn.Speaker]; ok && turn.Start-out[i].End <= 0.35 {
			out[i].End = turn.End
			continue
		}
		last[turn.Speaker] = len(out)
		out = append(out, turn)
	}
	return out
}

// TestChannels: a call of two voices is split without an error, even if each
// voice is also in the other's channel. The short form has the harder call only.
func TestChannels(t *testing.T) {
	p := shared(t)
	for _, c := range []struct {
		name  string
		bleed float32
		worst float64
	}{{"20 dB of bleed", 0.1, 0.02}, {"apart", 0, 0.005}} {
		if c.bleed == 0 && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			samples, truth := call(t, c.bleed)
			run := func(mode otograph.Channels) *otograph.Result {
				off := false
				var told []string
				res, err := p.Run(t.Context(), audio.Raw(samples, audio.SampleRate, 2), otograph.Options{EnableAudioEvents: &off}, otograph.RunOptions{
					Channels: mode,
					Segments: func(more []otograph.Segment) {
						for _, s := range more {
							told = append(told, s.Text)
						}
					},
				})
				require.NoError(t, err)
				if mode != otograph.ChannelsMix { // in the mix, sentences are split where the speaker changes
					var texts []string
					for _, s := range res.Segments {
						texts = append(texts, s.Text)
					}
					assert.Equal(t, texts, told)
				}
				return res
			}
			res := run(otograph.ChannelsSplit)
			found := joined(res.DiarizeSegments)
			der := bench.ScoreTurns(truth, found, bench.DEROptions{Collar: 0.25})
			exact := bench.ScoreTurns(truth, found, bench.DEROptions{})
			t.Logf("DER %.2f %% (collar 0.25 s), %.2f %% without (missed %.2f s, false alarm %.2f s, confused %.2f s of %.1f s)",
				100*der.Rate(), 100*exact.Rate(), exact.Missed, exact.FalseAlarm, exact.Confusion, exact.Scored)
			assert.LessOrEqual(t, der.Rate(), c.worst)
			assert.Zero(t, exact.Confusion)

			assert.Equal(t, 2, res.NumSpeakers)
			require.Len(t, res.SpeakerEmbeddings, 2)
			assert.Equal(t, "CHANNEL_0", res.SpeakerEmbeddings[0].SpeakerID, "the first speaker is listed first")
			assert.NotEmpty(t, res.Segments)
			for i, s := range res.Segments {
				assert.True(t, strings.HasPrefix(s.Speaker, "CHANNEL_"), s.Speaker)
				assert.True(t, i == 0 || s.Start >= res.Segments[i-1].Start, "in order of time")
			}
			require.Len(t, res.Warnings, map[bool]int{true: 1}[c.bleed > 0])
			for _, w := range res.Warnings {
				assert.Equal(t, "channels", w.Option)
				assert.Contains(t, w.Reason, "where a channel repeats another one, it is not transcribed: ")
			}
			assert.Equal(t, res.DiarizeSegments, run(otograph.ChannelsAuto).DiarizeSegments, "a call is told")
			if testing.Short() { // TestSplitRecordingResumesFromCheckpoints mixes too
				return
			}
			for _, turn := range run(otograph.ChannelsMix).DiarizeSegments {
				assert.True(t, strings.HasPrefix(turn.Speaker, "SPEAKER_"), "the mix is unchanged")
			}
		})
	}
}

// TestChannelsOfOneMicrophone: two channels with the same audio, and a single
// channel, are not split.
func TestChannelsOfOneMicrophone(t *testing.T) {
	p := shared(t)
	pcm, err := audio.Open(t.Context(), excerpt(t), audio.Options{})
	require.NoError(t, err)
	defer pcm.Close()
	mono := slices.Clone(pcm.Samples(0, pcm.Len()))
	var stereo []float32
	for _, x := range mono {
		stereo = append(stereo, x, 0.7*x)
	}
	off, two := false, 2
	opt := otograph.Options{ASRLanguage: new("en"), EnableAudioEvents: &off, NumSpeakers: &two}
	run := func(samples []float32, channels int, mode otograph.Channels) *otograph.Result {
		res, err := p.Run(t.Context(), audio.Raw(samples, audio.SampleRate, channels), opt, otograph.RunOptions{Channels: mode})
		require.NoError(t, err)
		return res
	}
	assert.Equal(t, "SPEAKER_0", run(stereo, 2, otograph.ChannelsAuto).DiarizeSegments[0].Speaker)
	res := run(mono, 1, otograph.ChannelsSplit)
	assert.Equal(t, "SPEAKER_0", res.DiarizeSegments[0].Speaker)
	require.Len(t, res.Warnings, 1)
	assert.Equal(t, "channels", res.Warnings[0].Option)
	res = run(stereo, 2, otograph.ChannelsSplit)
	assert.Equal(t, 1, res.NumSpeakers, "the softer channel adds no speaker")
	assert.Equal(t, "CHANNEL_0", res.DiarizeSegments[0].Speaker)
	require.Len(t, res.Warnings, 2)
	assert.Equal(t, "num_speakers", res.Warnings[0].Option)
	assert.Contains(t, res.Warnings[1].Reason, "repeats")

	assert.Empty(t, run(make([]float32, 4*audio.SampleRate), 2, otograph.ChannelsSplit).DiarizeSegments, "silence")

	_, err = p.Run(t.Context(), audio.Raw(mono, audio.SampleRate, 1), opt, otograph.RunOptions{Channels: "left"})
	var wrong *otograph.OptionError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "channels", wrong.Field)
}

// TestSplitRecordingResumesFromCheckpoints: a run of split channels resumes
// from its own checkpoints, not from the mix's, with the same result,
// and each stage has its own time.
func TestSplitRecordingResumesFromCheckpoints(t *testing.T) {
	p := shared(t)
	samples, _ := call(t, 0)
	samples = samples[:2*12*audio.SampleRate]
	m := &memory{kept: map[string][]byte{}}
	run := func(mode otograph.Channels) *otograph.Result {
		m.loaded = 0
		res, err := p.Run(t.Context(), audio.Raw(samples, audio.SampleRate, 2), otograph.Options{}, otograph.RunOptions{Channels: mode, Checkpoints: m})
		require.NoError(t, err)
		return res
	}
	first := run(otograph.ChannelsSplit)
	assert.Zero(t, m.loaded)
	for _, stage := range []otograph.Stage{"decode", "vad", "transcribe", "embed", "events", "diarize"} {
		assert.Positive(t, first.Stats.StageSeconds[stage], stage)
	}
	assert.Positive(t, first.Stats.EmbeddingWindows)
	again := run(otograph.ChannelsSplit)
	assert.Equal(t, 4, m.loaded, "voice activity, language, text and sounds")
	a, err := json.Marshal(first)
	require.NoError(t, err)
	b, err := json.Marshal(again)
	require.NoError(t, err)
	assert.JSONEq(t, string(a), string(b))
	mix := run(otograph.ChannelsMix)
	assert.Zero(t, m.loaded, "the split's checkpoints are not used for the mix")
	assert.Equal(t, "SPEAKER_0", mix.DiarizeSegments[0].Speaker)
}
