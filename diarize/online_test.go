package diarize

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// sameVoice is an embedder that states when two voices are one.
type sameVoice struct{ Embedder }

func (sameVoice) Dim() int                    { return 64 }
func (sameVoice) SameSpeaker() float64        { return 0.5 }
func (sameVoice) Cosines() (one, two float64) { return 0, 0 }

// likeVoices states the cosines of talk's voices.
type likeVoices struct{ sameVoice }

func (likeVoices) Cosines() (one, two float64) { return 0.67, 0.3 }

// talk makes utterances of made-up voices.
type talk struct {
	r      *rand.Rand
	people [][]float32
	at     int
}

func newTalk(people int) *talk {
	t := &talk{r: rand.New(rand.NewPCG(3, 4))}
	for range people {
		t.people = append(t.people, t.vector(nil, 1))
	}
	return t
}

// vector returns a random vector near a voice.
func (t *talk) vector(near []float32, noise float64) []float32 {
	v := make([]float32, 64)
	for i := range v {
		v[i] = float32(noise * t.r.NormFloat64() / 8)
		if near != nil {
			v[i] += near[i]
		}
	}
	voices.Normalize(v)
	return v
}

// says returns an utterance of a person.
func (t *talk) says(person int, seconds float64) *Embeddings {
	s := audio.Span{Start: t.at, End: t.at + int(seconds*audio.SampleRate)}
	t.at = s.End + audio.SampleRate/2
	e := &Embeddings{Speech: []audio.Span{s}, vectors: matrix{dim: 64}}
	e.Windows, e.Segment = windows(e.Speech, 0, false)
	for range e.Windows {
		e.vectors.data = append(e.vectors.data, t.vector(t.people[person], 0.7)...)
		e.vectors.n++
	}
	return e
}

func TestOnlineNumbersVoicesOnce(t *testing.T) {
	o, err := NewOnline(sameVoice{}, DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	talk := newTalk(4)
	turns := o.Add(talk.says(0, 1))
	require.Len(t, turns, 1)
	assert.Equal(t, -1, turns[0].Speaker, "a second is too short for a number")
	assert.Empty(t, o.Changes())
	turns = o.Add(talk.says(0, 1))
	assert.Equal(t, 0, turns[0].Speaker)
	changes := o.Changes()
	require.Len(t, changes, 1, "the first second has its number now")
	assert.Equal(t, Change{Span: audio.Span{End: audio.SampleRate}, From: -1, To: 0}, changes[0])

	number := map[int]int{0: 0} // by person
	for i := range 80 {
		person := talk.r.IntN(4)
		for _, turn := range o.Add(talk.says(person, 1.5+3*talk.r.Float64())) {
			require.GreaterOrEqual(t, turn.Speaker, 0)
			if i >= 20 {
				assert.Equal(t, number[person], turn.Speaker, "person %d", person)
			}
			number[person] = turn.Speaker
		}
		if changes := o.Changes(); i >= 20 { // the first words may be assigned to another voice for a while
			assert.Empty(t, changes)
		}
		assert.LessOrEqual(t, len(o.labels), recentWindows, "the others are settled")
	}
	assert.Len(t, number, 4)
	assert.Len(t, o.voices, 4)
	speakers := o.Speakers()
	require.Len(t, speakers, 4)
	for person, n := range number {
		assert.Greater(t, Similarity(talk.people[person], speakers[n].Embedding), 0.9)
	}
}

// A second voice that is at first taken for the first voice gets its own number
// after a few seconds of speech, also for the speech already reported.
func TestOnlineCorrectsASecondVoice(t *testing.T) {
	o, err := NewOnline(likeVoices{}, DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	talk := newTalk(2)
	for i := range talk.people[1] { // a cosine of about 0.55
		talk.people[1][i] += 0.65 * talk.people[0][i]
	}
	voices.Normalize(talk.people[1])
	reported := map[audio.Span]int{}
	changed := 0
	for i := range 8 {
		e := talk.says(i%2, 3)
		for _, turn := range o.Add(e) {
			reported[e.Speech[0]] = turn.Speaker
		}
		for _, c := range o.Changes() {
			assert.Equal(t, reported[c.Span], c.From)
			reported[c.Span] = c.To
			changed++
		}
	}
	assert.Positive(t, changed)
	for i, s := range o.recent.Speech {
		assert.Equal(t, i%2, reported[s])
	}
	assert.Equal(t, 2, len(o.known))
}

// A settled voice keeps its number after a long absence, and a late voice gets
// its own.
func TestOnlineSettlesVoices(t *testing.T) {
	o, err := NewOnline(likeVoices{}, DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	talk := newTalk(3)
	say := func(person, times int) (last int) {
		for range times {
			for _, turn := range o.Add(talk.says(person, 4)) {
				last = turn.Speaker
			}
		}
		return last
	}
	assert.Equal(t, 0, say(0, 3))
	assert.Equal(t, 1, say(1, 24))
	assert.Equal(t, 0, say(0, 1))
	assert.Equal(t, 2, say(2, 2))
	assert.Equal(t, 1, say(1, 1))
	assert.Less(t, o.recent.vectors.n, recentWindows+1)
}

func TestOnlineKeepsToTheNumberOfSpeakers(t *testing.T) {
	opt := DefaultOptions().ClusterOptions
	opt.NumSpeakers = 2
	o, err := NewOnline(sameVoice{}, opt)
	require.NoError(t, err)
	talk := newTalk(5)
	for i := range 10 {
		o.Add(talk.says(i%5, 3))
	}
	assert.Equal(t, 2, len(o.known))
	opt.NumSpeakers = -1
	_, err = NewOnline(sameVoice{}, opt)
	assert.ErrorIs(t, err, ErrOptions)
}

// Speech of settled windows, in the middle of a stretch, is not counted again
// in the next window.
func TestSettledSpeechStays(t *testing.T) {
	t.Parallel()
	o := Online{
		recent: Embeddings{
			Speech: []audio.Span{{Start: 0, End: 100}}, Windows: []audio.Span{{Start: 0, End: 40}, {Start: 30, End: 70}, {Start: 60, End: 100}},
			Segment: []int{0, 0, 0}, vectors: matrix{dim: 1, n: 3, data: []float32{1, 1, 1}},
		},
		voices: []onlineVoice{{sum: []float32{0}}}, labels: []int{0, 0, 0}, shown: []int{0, 0, 0}, seconds: []float64{1, 1, 1},
	}
	o.settle(1)
	assert.Equal(t, audio.Span{Start: 35, End: 65}, o.reach(0))
	o.settle(2)
	assert.Empty(t, o.recent.Speech)
}
