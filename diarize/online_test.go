package diarize

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/audio"
	"github.com/otograph/otograph/voices"
)

// sameVoice is an embedder that states when two voices are one.
type sameVoice struct{ Embedder }

func (sameVoice) Dim() int             { return 64 }
func (sameVoice) SameSpeaker() float64 { return 0.5 }

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
	for range 120 {
		person := talk.r.IntN(4)
		for _, turn := range o.Add(talk.says(person, 1.5+3*talk.r.Float64())) {
			require.GreaterOrEqual(t, turn.Speaker, 0)
			if n, ok := number[person]; ok {
				assert.Equal(t, n, turn.Speaker, "person %d", person)
			}
			number[person] = turn.Speaker
		}
		require.NoError(t, o.Revise(t.Context()))
		assert.Empty(t, o.Changes())
	}
	assert.Len(t, number, 4)
	speakers := o.Speakers()
	require.Len(t, speakers, 4)
	for person, n := range number {
		assert.Greater(t, Similarity(talk.people[person], speakers[n].Embedding), 0.9)
	}
}

// Revise corrects what was wrong, and the number of a voice that was split in
// two stays with the greater part; no number gets another person.
func TestOnlineCorrects(t *testing.T) {
	o, err := NewOnline(sameVoice{}, DefaultOptions().ClusterOptions)
	require.NoError(t, err)
	talk := newTalk(2)
	for i := range 12 {
		o.Add(talk.says(i%2, 4))
	}
	require.Equal(t, 2, o.next)
	wrong := len(o.labels) - 3
	for i := wrong; i < len(o.labels); i++ { // as if the last windows had been taken for the other
		o.labels[i] = 1 - o.labels[i]
		o.shown[i] = o.voices[o.labels[i]].number
	}
	from := o.shown[wrong]
	o.due = 0
	require.NoError(t, o.Revise(t.Context()))
	changes := o.Changes()
	require.Len(t, changes, 1)
	assert.Equal(t, []int{from, 1 - from}, []int{changes[0].From, changes[0].To})
	assert.Equal(t, 2, o.next)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.due = 0
	assert.ErrorIs(t, o.Revise(ctx), context.Canceled)
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
	assert.Equal(t, 2, o.next)
	opt.NumSpeakers = -1
	_, err = NewOnline(sameVoice{}, opt)
	assert.ErrorIs(t, err, ErrOptions)
}
