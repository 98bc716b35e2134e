package httpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/spec"
)

// modelSum is the hash of a speaker model.
const modelSum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

// TestVoicesOverHTTP stores, lists and deletes voices; no response and no line
// of the log contains personal data.
func TestVoicesOverHTTP(t *testing.T) {
	w := newWorld(t)
	const vector = "[-0.8125,-0.5830078125,0]" // no time in the log has a sign
	body := `{"name":"Ann Example","consent":"said yes on Monday","model":"` + modelSum + `","vectors":[` + vector + `]}`
	a := w.do("POST", "/voices", body)
	require.Equal(t, 201, a.status, "%s", a.body)
	ann := a.object(t)
	assert.Equal(t, []any{"Ann Example", "said yes on Monday", modelSum, 1.0}, []any{ann["name"], ann["consent"], ann["model"], ann["recordings"]})
	a = w.do("GET", "/voices", nil)
	assert.Equal(t, []any{ann}, a.object(t)["voices"])
	_, stranger := w.newAccount("stranger", "1")
	assert.Empty(t, w.do("GET", "/voices", nil, with("X-Api-Key", stranger)).object(t)["voices"])
	joined := w.do("POST", "/voices", `{"name":"Ann","consent":"Tuesday","voice_id":"`+ann["id"].(string)+`"}`)
	require.Equal(t, 201, joined.status, "%s", joined.body)
	for body, want := range map[string]int{
		`{"name":"Ann","consent":"yes","voice_id":"` + ann["id"].(string) + `"}`:              404, // became the other
		`{"name":"Ann","consent":"yes","voice_id":"x"}`:                                       404,
		`{"name":"Ann","consent":"yes","voice_id":"` + joined.object(t)["id"].(string) + `"}`: 400, // itself
	} {
		assert.Equal(t, want, w.do("POST", "/voices", body).status, body)
	}
	ann = joined.object(t)
	path := "/voices/" + ann["id"].(string)
	assert.Equal(t, 404, w.do("DELETE", path, nil, with("X-Api-Key", stranger)).status, "another account's")
	assert.Equal(t, 404, w.do("DELETE", "/voices/7", nil).status)
	reader, _, err := w.accounts.CreateKey(t.Context(), w.account.ID, accounts.KeyOptions{ReadOnly: true})
	require.NoError(t, err)
	assert.Equal(t, 200, w.do("GET", "/voices", nil, with("X-Api-Key", reader)).status)
	assert.Equal(t, 403, w.do("POST", "/voices", body, with("X-Api-Key", reader)).status)
	assert.Equal(t, 403, w.do("DELETE", path, nil, with("X-Api-Key", reader)).status)
	assert.Equal(t, 401, w.do("GET", "/voices", nil, with("X-Api-Key", "asr_0")).status)
	require.Equal(t, 200, w.do("DELETE", path, nil).status)
	assert.Equal(t, 404, w.do("DELETE", path, nil).status)
	assert.Empty(t, w.do("GET", "/voices", nil).object(t)["voices"])
	assert.Contains(t, w.log.String(), `"voice":"`+ann["id"].(string))
	assert.NotContains(t, w.log.String(), `"task":"`+ann["id"].(string))
	for _, secret := range []string{"Ann", "Monday", "-0.8", "-0.5"} {
		assert.NotContains(t, w.log.String(), secret)
	}
}

// TestInvalidVoicesAreRefused: a body that is not a voice gets 400 with the
// name of the field.
func TestInvalidVoicesAreRefused(t *testing.T) {
	w := newWorld(t)
	const who = `"name":"Ann","consent":"yes"`
	for body, want := range map[string]string{
		`{}`: "name",
		`{"name":"Ann","model":"` + modelSum + `","vectors":[[1]]}`: "consent: is required",
		`{` + who + `}`: "use only one of them",
		`{` + who + `,"model":"` + modelSum + `"}`:                                        "model and vectors",
		`{` + who + `,"vectors":[[1]]}`:                                                   "model and vectors",
		`{` + who + `,"speaker":"SPEAKER_0"}`:                                             "task_id and speaker",
		`{` + who + `,"model":"` + modelSum + `","vectors":7}`:                            "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":null}`:                         "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":[[null]]}`:                     "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":[[1e39]]}`:                     "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":[]}`:                           "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":[[0,0]]}`:                      "vectors",
		`{` + who + `,"model":"` + modelSum + `","vectors":[[1],[1,2]]}`:                  "vectors",
		`{"name":"SPEAKER_1","consent":"yes","model":"` + modelSum + `","vectors":[[1]]}`: "name",
		`{` + who + `,"model":"` + modelSum + `","vectors":[[1]],"speaker":"SPEAKER_0"}`:  "use only one of them",
		`{` + who + `,"voice_id":"x","speaker":"SPEAKER_0"}`:                              "use only one of them",
		`{"name":"Ann","denied":true}`:                                                    "denied: requires task_id and speaker",
		`{` + who + `,"denied":true,"task_id":"x","speaker":"S"}`:                         "denied: requires task_id and speaker, and no consent",
		`{` + who + `,"denied":1}`:                                                        "denied: must be true or false",
		`{` + who + `,"age":7}`:                                                           "age",
		`{` + who + `,"model":"m","vectors":[[1]]}`:                                       "model: must be the SHA-256",
		`{"name":" ","consent":"yes","model":"` + modelSum + `","vectors":[[1]]}`:         "name: must be 1 to 64",
	} {
		a := w.do("POST", "/voices", body)
		assert.Equal(t, []any{400, codeInvalidRequest}, []any{a.status, a.code(t)}, body)
		assert.Contains(t, a.object(t)["error"], want, body)
	}
	for _, id := range []string{"x", "01a1fe6c-4156-7cc0-98a4-f4501faaa7d1"} {
		a := w.do("POST", "/voices", `{`+who+`,"task_id":"`+id+`","speaker":"SPEAKER_0"}`)
		assert.Equal(t, 404, a.status)
		assert.Equal(t, "task_id: there is no such task", a.object(t)["error"])
	}
	a := w.do("POST", "/voices", io.MultiReader(strings.NewReader("{"), strings.NewReader(strings.Repeat(" ", maxVoiceBody)), strings.NewReader("}")))
	assert.Equal(t, []any{413, codePayloadTooLarge}, []any{a.status, a.code(t)})
}

// TestSpeakerOfADeletedTaskIs404: if a task is deleted while its speaker is
// being stored, the response is 404, not an internal error.
func TestSpeakerOfADeletedTaskIs404(t *testing.T) {
	w := newWorld(t)
	doomed := ""
	w.blobs.Inject(func(op, _ string) error {
		switch {
		case op == "delete":
			return errors.New("the file stays for the clean-up")
		case op == "open" && doomed != "":
			id := doomed
			doomed = ""
			return w.tasks.Delete(t.Context(), w.account.ID, id)
		}
		return nil
	})
	id := w.create(upload(nil))
	result := spec.Result{
		Ran: spec.Capabilities{ASR: true, Diarize: true}, NumSpeakers: 1,
		SpeakerEmbeddings: []spec.SpeakerEmbedding{{SpeakerID: "SPEAKER_0", Embedding: []float32{0.6, 0.8}, SegmentCount: 1}},
	}
	require.NoError(t, w.tasks.Complete(t.Context(), w.claim("worker"), tasks.Outcome{Result: result, Seconds: 2, VoiceModel: modelSum}))
	body := `{"name":"Ann","consent":"yes","task_id":"` + id + `","speaker":"SPEAKER_0"}`
	require.Equal(t, 201, w.do("POST", "/voices", body).status)
	denial := `{"name":"Ann","denied":true,"task_id":"` + id + `","speaker":"SPEAKER_0"}`
	assert.Contains(t, string(w.do("POST", "/voices", denial).body), "speaker: is one of the recordings")
	assert.Equal(t, 404, w.do("POST", "/voices", strings.Replace(denial, "Ann", "Cid", 1)).status)
	require.Equal(t, 201, w.do("POST", "/voices", `{"name":"Bob","consent":"yes","model":"`+modelSum+`","vectors":[[1,0]]}`).status)
	denied := w.do("POST", "/voices", strings.Replace(denial, "Ann", "Bob", 1))
	require.Equal(t, 201, denied.status, "%s", denied.body)
	assert.Equal(t, []any{"Bob", 1.0, 1.0, "yes"}, []any{denied.object(t)["name"], denied.object(t)["recordings"], denied.object(t)["denied"], denied.object(t)["consent"]})
	doomed = id
	a := w.do("POST", "/voices", body)
	assert.Equal(t, 404, a.status, "%s", a.body)
	assert.Equal(t, "task_id: there is no such task", a.object(t)["error"])
	assert.Empty(t, doomed, "the task was deleted meanwhile")
}

// TestVoicesOptionIsEchoedIfGiven: the option voices is echoed only if it was
// given.
func TestVoicesOptionIsEchoedIfGiven(t *testing.T) {
	w := newWorld(t)
	for options, want := range map[string]any{`{}`: nil, `{"voices":true}`: true, `{"voices":false}`: false} {
		body := `{"audio_url":"https://media.example.com/a.wav","options":` + options + `}`
		key := with("Idempotency-Key", options)
		a := w.do("POST", "/tasks", body, key)
		require.Equal(t, 201, a.status, "%s", a.body)
		id := a.object(t)["id"].(string)
		batch := w.do("POST", "/tasks/batch", `{"audio_url":["https://media.example.com/a.wav"],"batch_mode":true,"options":`+options+`}`)
		require.Less(t, batch.status, 300, "%s", batch.body)
		inBatch := batch.object(t)["results"].([]any)[0].(map[string]any)["task"].(map[string]any)
		for _, task := range []map[string]any{a.object(t), w.do("POST", "/tasks", body, key).object(t), w.do("GET", "/tasks/"+id, nil).object(t), inBatch} {
			got, given := task["options"].(map[string]any)["voices"]
			assert.Equal(t, want != nil, given)
			assert.Equal(t, want, got)
		}
	}
	assert.Equal(t, 400, w.do("POST", "/tasks", `{"audio_url":"https://media.example.com/a.wav","options":{"voices":null}}`).status)
}

// FuzzVoice: any body of POST /voices is read without a panic, and accepted
// vectors are finite.
func FuzzVoice(f *testing.F) {
	f.Add(`{"name":"Ann","consent":"yes","model":"m","vectors":[[1,2],[3,4]]}`)
	f.Add(`{"vectors":[[1e38,-1e39,null]]}`)
	f.Add(`{"task_id":"x","speaker":"SPEAKER_0","vectors":[`)
	f.Fuzz(func(t *testing.T, body string) {
		var v voiceSubmission
		if err := jsonstream.ReadObject(strings.NewReader(body), maxVoiceBody, v.fields()); err != nil {
			return
		}
		_ = v.check()
		for _, x := range v.voice.Vectors {
			if _, err := json.Marshal(x); err != nil { // JSON cannot represent infinite numbers
				t.Fatal(fmt.Sprint(x), err)
			}
		}
	})
}
