package tasks_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// TestAnnotationsLoseNoChange: of two changes based on the same version one is
// accepted; changes without a version are all kept.
func TestAnnotationsLoseNoChange(t *testing.T) {
	for name, open := range map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			f := taskstest.New(t, open(t, db.Options{}))
			id := f.Add(nil).ID
			require.NoError(t, f.Complete(t.Context(), f.Take(), tasks.Outcome{Seconds: 30}))
			const many = 8
			var wg sync.WaitGroup
			taken := make(chan bool, many)
			for i := range many {
				wg.Go(func() {
					text, zero := fmt.Sprint("text ", i), int64(0)
					_, err := f.Annotate(t.Context(), f.Account, id, tasks.AnnotationPatch{Texts: map[string]*string{fmt.Sprint(i): &text}}, &zero)
					if err != nil {
						assert.ErrorIs(t, err, tasks.ErrVersion)
					}
					taken <- err == nil
					_, err = f.Annotate(t.Context(), f.Account, id, tasks.AnnotationPatch{Texts: map[string]*string{fmt.Sprint(100 + i): &text}}, nil)
					assert.NoError(t, err)
				})
			}
			wg.Wait()
			close(taken)
			first := 0
			for ok := range taken {
				if ok {
					first++
				}
			}
			a, err := f.Annotations(t.Context(), f.Account, id)
			require.NoError(t, err)
			assert.LessOrEqual(t, first, 1)
			assert.Len(t, a.Texts, many+first)
			assert.EqualValues(t, many+first, a.Version)
		})
	}
}

// TestApplyKeepsWordsOfTheCorrectedText: a corrected segment loses the words
// that its text no longer contains, and every turn of a speaker has the new
// name.
func TestApplyKeepsWordsOfTheCorrectedText(t *testing.T) {
	r := spec.Result{
		Segments: []spec.Segment{
			{ID: 0, Text: "one too three", Speaker: "SPEAKER_0", Words: []spec.Word{{Word: "one"}, {Word: "too"}, {Word: "three"}}},
			{ID: 1, Text: "as it was", Speaker: "SPEAKER_1", Words: []spec.Word{{Word: "as"}}},
		},
		DiarizeSegments: []spec.Turn{{Speaker: "SPEAKER_0"}, {Speaker: "SPEAKER_1"}},
	}
	tasks.Annotations{Speakers: map[string]string{"SPEAKER_0": "Ana"}, Texts: map[string]string{"0": "one two three", "7": "nobody"}}.Apply(&r)
	assert.Equal(t, []spec.Segment{
		{ID: 0, Text: "one two three", Speaker: "Ana", Words: []spec.Word{{Word: "one"}, {Word: "three"}}},
		{ID: 1, Text: "as it was", Speaker: "SPEAKER_1", Words: []spec.Word{{Word: "as"}}},
	}, r.Segments)
	assert.Equal(t, []spec.Turn{{Speaker: "Ana"}, {Speaker: "SPEAKER_1"}}, r.DiarizeSegments)
}
