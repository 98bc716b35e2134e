package tasks_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
)

// storedResult is the head of a stored result. Its names are the field names of
// spec.Result: after one is renamed, finished tasks would lose that part.
const storedResult = `{"Result":{"AudioDuration":2.5,"AudioMD5":"d41d8cd98f00b204e9800998ecf8427e","Language":"en","LanguageProbability":0.9,` +
	`"VADSegments":[{"start":0.1,"end":2}],"NumSpeakers":1,"SpeakerEmbeddings":[{"speaker_id":"SPEAKER_0","embedding":[1]}],` +
	`"DiarizeSegments":[{"start":0.1,"end":2,"speaker":"SPEAKER_0"}],"AudioEvents":[{"start":0,"end":1,"event":"Speech","confidence":0.8}],` +
	`"Names":{"SPEAKER_0":"Ann"},"Ran":{"ASR":true,"Diarize":true,"AudioEvents":true},` +
	`"Warnings":[{"option":"audio","reason":"cut"}],"Stats":{"DecodedSeconds":2.5}}}`

// withStored returns a service in which the result of a done task is the given
// text, and the task's identifier.
func withStored(t *testing.T, result string) (*taskstest.Fixture, string) {
	f := taskstest.New(t, dbtest.SQLite(t, db.Options{}))
	task := f.Add(nil)
	f.Start(1, worker.Config{Engine: taskstest.Quick})
	require.Equal(t, tasks.StatusDone, f.WaitFor(task.ID).Status)
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for _, key := range f.Files() {
		if strings.HasPrefix(key, "results/") {
			require.NoError(t, f.Config.Blobs.Put(t.Context(), key, bytes.NewReader(encoder.EncodeAll([]byte(result), nil))))
		}
	}
	return f, task.ID
}

// TestResultsInAnotherFormAreRefused: a file that this version cannot read is
// an error, not an empty result.
func TestResultsInAnotherFormAreRefused(t *testing.T) {
	f, id := withStored(t, `{"ran":{"ASR":true},"language":"en"}`)
	_, err := f.Result(t.Context(), f.Account, id)
	require.ErrorContains(t, err, "the stored file has no Result")
}

// TestStoredResultsStayReadable: every part of a result that was stored is still
// there when it is read.
func TestStoredResultsStayReadable(t *testing.T) {
	f, id := withStored(t, storedResult)
	r, err := f.Result(t.Context(), f.Account, id)
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	notStored := map[string]bool{"Segments": true, "NumSpeakersProbability": true, "Tier": true, "Demo": true}
	found := reflect.ValueOf(r.Head)
	for i := range found.NumField() {
		name := found.Type().Field(i).Name
		assert.Equal(t, notStored[name], found.Field(i).IsZero(), "part %s of a stored result", name)
	}
}
