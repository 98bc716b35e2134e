package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/queue"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/spec"
)

// TestUnsupportedLanguageIsRefused: a language without a model is refused
// before anything is held or stored, with a list of the installed languages.
// While no worker has reported, nothing is refused.
func TestUnsupportedLanguageIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		german := func(r *tasks.Request) { r.Options = spec.EffectiveOptions{ASRLanguage: new("de")} }
		f.Add(german)
		for id, available := range map[string]spec.Available{"one": {Standard: true, StandardLanguages: []string{"en", "es"}}, "other": {Standard: true, StandardLanguages: []string{"fr", "en"}}} {
			leave, err := f.Queue().Enter(t.Context(), queue.Member{ID: id, Kind: queue.Worker, Available: available}, time.Hour, nil)
			require.NoError(t, err)
			t.Cleanup(leave)
		}
		files := f.Files()
		_, _, err := f.Create(t.Context(), f.Request(german), tasks.Idempotency{})
		var refused *tasks.LanguageError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, `asr_language: no installed model supports "de"; installed: en, es, fr`, refused.Error())
		batch := f.Request(german)
		batch.Batch = true
		_, _, err = f.CreateBatch(t.Context(), []tasks.Request{batch}, tasks.Idempotency{})
		require.ErrorAs(t, err, &refused)
		f.DropAudio(t.Context(), batch.Audio.Key)
		assert.Equal(t, files, f.Files(), "the audio went")
		for _, options := range []spec.EffectiveOptions{{ASRLanguage: new("fr")}, {}, {EnableASR: new(false), EnableDiarize: new(false), ASRLanguage: new("de")}} {
			f.Add(func(r *tasks.Request) { r.Options = options })
		}
		f.Exact()
	})
}

// TestTranslationNeedsEveryWorker: a translation is accepted if all workers'
// models translate, because any worker may claim it, and while no worker has
// reported.
func TestTranslationNeedsEveryWorker(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		english := func(r *tasks.Request) { r.Extras.Translate = true }
		enter := func(id string, a spec.Available) (leave func()) {
			leave, err := f.Queue().Enter(t.Context(), queue.Member{ID: id, Kind: queue.Worker, Available: a}, time.Hour, nil)
			require.NoError(t, err)
			return leave
		}
		f.Add(english)
		defer enter("one", spec.Available{Standard: true, Translates: true})()
		f.Add(english)
		leave := enter("other", spec.Available{Standard: true})
		refused := f.Request(english)
		_, _, err := f.Create(t.Context(), refused, tasks.Idempotency{})
		require.ErrorIs(t, err, tasks.ErrTranslation)
		f.DropAudio(t.Context(), refused.Audio.Key)
		f.Add(nil)
		leave()
		f.Add(english)
		f.Exact()
	})
}

// TestErrorIsNullWhileProcessing: the error of the previous attempt is not
// shown while the next one runs.
func TestErrorIsNullWhileProcessing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := time.Now()
		f := taskstest.New(t, d, func(c *tasks.Config) { c.Clock = func() time.Time { return now } })
		task := f.Add(nil)
		require.NoError(t, f.Release(t.Context(), f.Take(), tasks.EndRecoverable, "no luck"))
		failed := f.Row(task.ID)
		assert.Equal(t, tasks.StatusFailed, failed.Status)
		assert.Equal(t, "no luck", *failed.ErrorMessage)
		now = now.Add(time.Hour)
		require.NotNil(t, f.Take())
		again := f.Row(task.ID)
		assert.Equal(t, tasks.StatusProcessing, again.Status)
		assert.Nil(t, again.ErrorMessage)
	})
}
