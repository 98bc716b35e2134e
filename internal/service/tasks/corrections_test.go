package tasks_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// stores lists both kinds of databases.
var stores = map[string]func(testing.TB, db.Options) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}

// talk completes a task whose result has a number of sentences of SPEAKER_0.
func talk(t *testing.T, f *taskstest.Fixture, sentences int) (id string) {
	o := tasks.Outcome{Seconds: 30, Result: spec.Result{Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 1, DiarizeSegments: []spec.Turn{{Start: 0, End: 30, Speaker: "SPEAKER_0"}}}}
	for i := range sentences {
		start := float64(i)
		o.Result.Segments = append(o.Result.Segments, spec.Segment{ID: i, Start: start, End: start + 1, Text: "two words", Speaker: "SPEAKER_0"})
	}
	id = f.Add(nil).ID
	require.NoError(t, f.Complete(t.Context(), f.Take(), o))
	return id
}

// TestEditorsLoseNothing: ten people correct one transcript at the same time.
// The service accepts one of two corrections that are based on one version, and
// the other editor repeats it. The log and the result have all of them.
func TestEditorsLoseNothing(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			const editors = 10
			f := taskstest.New(t, open(t, db.Options{}))
			id := talk(t, f, editors)
			var wg sync.WaitGroup
			for editor := range editors {
				wg.Go(func() {
					speaker, name, version := spec.SpeakerName(editor+1), fmt.Sprint("editor ", editor), int64(0)
					for _, c := range []corrections.Change{
						{Op: corrections.Assign, Segment: &editor, Speaker: speaker},
						{Op: corrections.Split, Segment: &editor, At: 4},
						{Op: corrections.Annotate, Texts: map[string]*string{fmt.Sprint(editor): &name}},
						{Op: corrections.Annotate, Speakers: map[string]*string{speaker: &name}},
					} {
						for {
							entry, err := f.Correct(t.Context(), f.Account, id, name, c, version)
							if current, ok := errors.AsType[*tasks.VersionError](err); ok {
								assert.Greater(t, current.Current, version)
								version = current.Current
								continue
							}
							assert.NoError(t, err)
							version = entry.Version
							break
						}
					}
				})
			}
			wg.Wait()
			log, err := f.Corrections(t.Context(), f.Account, id)
			require.NoError(t, err)
			require.Len(t, log, 4*editors)
			made := map[string]int{}
			for i, e := range log {
				require.EqualValues(t, i+1, e.Version)
				made[e.Author]++
			}
			for editor := range editors {
				assert.Equal(t, 4, made[fmt.Sprint("editor ", editor)])
			}
			r, names, err := f.Corrected(t.Context(), f.Account, id)
			require.NoError(t, err)
			defer r.Close()
			whole, err := r.Whole()
			require.NoError(t, err)
			require.Len(t, whole.Segments, 2*editors)
			assert.Equal(t, editors, whole.NumSpeakers)
			assert.Len(t, names, editors)
			for i, s := range whole.Segments {
				editor := i / 2
				assert.Equal(t, spec.SpeakerName(editor+1), s.Speaker)
				assert.Equal(t, []string{fmt.Sprint("editor ", editor), "words"}[i%2], s.Text)
			}
			original, _ := f.ReadResult(id)
			assert.Len(t, original.Segments, editors)
			require.NoError(t, f.Delete(t.Context(), f.Account, id))
			assert.Zero(t, f.Count("SELECT COUNT(*) FROM corrections"))
		})
	}
}

// TestStoresReplayAlike: both databases return the log as it was written, and a
// change that does not fit is not in it.
func TestStoresReplayAlike(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 123_456_000, time.UTC)
	var logs [][]corrections.Entry
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			f := taskstest.New(t, open(t, db.Options{}), func(c *tasks.Config) { c.Clock = func() time.Time { return now } })
			id := talk(t, f, 3)
			version := int64(0)
			add := func(c corrections.Change) error {
				e, err := f.Correct(t.Context(), f.Account, id, "Ana", c, version)
				if err == nil {
					version = e.Version
				}
				return err
			}
			assert.ErrorIs(t, add(corrections.Change{Op: corrections.Undo}), corrections.ErrChange)
			text := `a "text" with 你好, \ and <b>`
			require.NoError(t, add(corrections.Change{Op: corrections.Annotate, Texts: map[string]*string{"0": &text, "1": nil}}))
			require.NoError(t, add(corrections.Change{Op: corrections.Split, Segment: new(0), At: 8}))
			require.NoError(t, add(corrections.Change{Op: corrections.Join, Segment: new(1)}))
			require.NoError(t, add(corrections.Change{Op: corrections.Undo}))
			assert.ErrorIs(t, add(corrections.Change{Op: corrections.Join, Segment: new(2)}), corrections.ErrChange)
			assert.ErrorIs(t, add(corrections.Change{Op: corrections.Join, Segment: new(99)}), corrections.ErrChange)
			log, err := f.Corrections(t.Context(), f.Account, id)
			require.NoError(t, err)
			assert.Equal(t, []any{int64(4), map[string]string{}, text, now}, []any{corrections.Version(log), corrections.Names(log), *log[0].Texts["0"], log[3].MadeAt})
			logs = append(logs, log)
		})
	}
	require.Len(t, logs, 2)
	assert.Equal(t, logs[0], logs[1])
}

// TestAnnotationsAreMigrated: annotations from before corrections are the
// first correction of their task.
func TestAnnotationsAreMigrated(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			f := taskstest.New(t, open(t, db.Options{}))
			id := talk(t, f, 1)
			f.Exec("INSERT INTO annotations (task_id, version, content, updated_at) VALUES ($1, 7, $2, 1)", id, `{"speakers":{"SPEAKER_0":"Ana"},"texts":{"0":"Hello."}}`)
			f.Exec("DROP TABLE corrections")
			migration, err := os.ReadFile("../../system/db/migrations/" + name + "/00002_corrections.sql")
			require.NoError(t, err)
			for statement := range strings.SplitSeq(strings.TrimSpace(string(migration)), ";\n") {
				f.Exec(statement)
			}
			log, err := f.Corrections(t.Context(), f.Account, id)
			require.NoError(t, err)
			assert.EqualValues(t, 7, corrections.Version(log))
			assert.Equal(t, map[string]string{"SPEAKER_0": "Ana"}, corrections.Names(log))
			assert.Equal(t, "Hello.", *log[0].Texts["0"])
		})
	}
}

// TestVoiceOfACorrectedSpeaker: a speaker's vector can be registered as long as
// the speaker keeps the sentences from which it was computed.
func TestVoiceOfACorrectedSpeaker(t *testing.T) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	o := tasks.Outcome{Seconds: 30, VoiceModel: strings.Repeat("01", 32), Result: spec.Result{Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 2}}
	for i := range 2 {
		speaker := spec.SpeakerName(i)
		o.Result.SpeakerEmbeddings = append(o.Result.SpeakerEmbeddings, spec.SpeakerEmbedding{SpeakerID: speaker, Embedding: []float32{0.6, 0.8}, SegmentCount: 1})
		o.Result.Segments = append(o.Result.Segments, spec.Segment{ID: i, Start: 10 * float64(i), End: 10 * float64(i+1), Text: "a longer sentence", Speaker: speaker})
		o.Result.DiarizeSegments = append(o.Result.DiarizeSegments, spec.Turn{Start: 10 * float64(i), End: 10 * float64(i+1), Speaker: speaker})
	}
	id := f.Add(nil).ID
	require.NoError(t, f.Complete(t.Context(), f.Take(), o))
	_, err := f.Correct(t.Context(), f.Account, id, "", corrections.Change{Op: corrections.Split, Segment: new(1), At: 9}, 0)
	require.NoError(t, err)
	_, err = f.Correct(t.Context(), f.Account, id, "", corrections.Change{Op: corrections.Assign, Segment: new(1), Speaker: "SPEAKER_0"}, 1)
	require.NoError(t, err)
	_, err = f.Correct(t.Context(), f.Account, id, "", corrections.Change{Op: corrections.Assign, Segment: new(2), Speaker: "SPEAKER_2"}, 2)
	require.NoError(t, err)
	_, err = f.SpeakerVoice(t.Context(), f.Account, id, "SPEAKER_0")
	require.NoError(t, err, "it has all of its own sentences")
	for _, speaker := range []string{"SPEAKER_1", "SPEAKER_2"} {
		_, err = f.SpeakerVoice(t.Context(), f.Account, id, speaker)
		require.ErrorIs(t, err, tasks.ErrNoVector)
		require.ErrorContains(t, err, "voices add --of "+speaker)
	}
}
