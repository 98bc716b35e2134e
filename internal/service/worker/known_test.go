package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/service/worker"
	"github.com/otograph/otograph/internal/system/db"
	"github.com/otograph/otograph/internal/test/dbtest"
	"github.com/otograph/otograph/internal/test/taskstest"
	"github.com/otograph/otograph/voices"
)

// TestEnginesGetTheAccountsVoices: an engine gets the voices that the task's
// account has when the engine asks, and only if the task requests them.
// Afterwards the engine's copy is overwritten.
func TestEnginesGetTheAccountsVoices(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := taskstest.New(t, d)
		other := f.NewAccount("other", 0)
		keep := func(account, name string) string {
			v, err := f.Accounts.AddVoice(t.Context(), account, voices.Voice{Name: name, Model: strings.Repeat("0", 64), Consent: "yes", Vectors: [][]float32{{3, 4}}})
			require.NoError(t, err)
			return v.ID
		}
		keep(f.Account, "Ann")
		bob := keep(f.Account, "Bob")
		keep(other, "Eve")
		cleo := keep(f.Account, "Cleo")
		var given []*voices.Register
		var names [][]string
		stop := f.Start(1, worker.Config{Engine: taskstest.EngineFunc(func(ctx context.Context, job worker.Job) (tasks.Outcome, error) {
			var found []string
			if job.Register != nil {
				if len(given) == 0 { // the task runs already
					assert.NoError(t, f.Accounts.DeleteVoice(ctx, f.Account, cleo))
				}
				register, err := job.Register(ctx)
				if !assert.NoError(t, err) {
					return tasks.Outcome{}, err
				}
				given = append(given, register)
				for _, v := range register.Voices {
					found = append(found, v.Name)
					assert.InDelta(t, 0.6, v.Vectors[0][0], 1e-6)
				}
			}
			names = append(names, found)
			return tasks.Outcome{Seconds: 30}, nil
		})})
		run := func(voices *bool) {
			f.WaitFor(f.Add(func(r *tasks.Request) { r.Options.Voices = voices }).ID)
		}
		run(new(true))
		require.NoError(t, f.Accounts.DeleteVoice(t.Context(), f.Account, bob))
		run(new(true))
		run(new(false))
		run(nil)
		stop()
		assert.Equal(t, [][]string{{"Ann", "Bob"}, {"Ann"}, nil, nil}, names)
		assert.Len(t, given, 2)
		for _, register := range given {
			for _, v := range register.Voices {
				assert.Equal(t, [][]float32{{0, 0}}, v.Vectors, "cleared")
			}
		}
	})
}
