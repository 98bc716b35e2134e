package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/voices"
)

// Bounds of POST /voices.
const (
	maxVoiceBody  = 1 << 20 // bytes
	maxVoiceField = 4096    // characters; the limits of each field are checked later
)

// voiceRecord is an account's view of a voice: without its vectors.
type voiceRecord struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Consent    string `json:"consent"`
	Model      string `json:"model"`
	Recordings int    `json:"recordings"`
	Denied     int    `json:"denied"`
	AddedAt    string `json:"added_at"`
}

func voiceRecordOf(v accounts.Voice) voiceRecord {
	return voiceRecord{ID: v.ID, Name: v.Name, Consent: v.Consent, Model: v.Model, Recordings: v.Recordings, Denied: v.Denied, AddedAt: stamp(v.AddedAt)}
}

// voiceSubmission is the body of POST /voices.
type voiceSubmission struct {
	voice         voices.Voice // vectors are nil if a task or another voice is named
	task, speaker string
	other         string // id of the voice to merge into this one
	denied        bool   // the speaker is another person than the voice
}

// createVoice handles POST /voices, an addition to the specification.
func (s *Server) createVoice(w http.ResponseWriter, r *request) error {
	var v voiceSubmission
	if err := readBody(w, r, maxVoiceBody, v.fields()); err != nil {
		return err
	}
	if err := v.check(); err != nil {
		return err
	}
	stored, err := s.storeVoice(r, v)
	switch {
	case errors.Is(err, accounts.ErrTooManyVoices), errors.Is(err, tasks.ErrNoVector):
		return &apiError{Status: http.StatusConflict, Code: codeConflict, Message: strings.TrimPrefix(strings.TrimPrefix(err.Error(), "add voice: "), "merge voices: "), cause: err}
	case errors.Is(err, tasks.ErrNotFound), errors.Is(err, tasks.ErrForbidden), errors.Is(err, tasks.ErrNotDone):
		e := s.translate(err)
		e.Message = "task_id: " + e.Message
		return e
	case err != nil:
		return err
	}
	return writeJSON(w, http.StatusCreated, voiceRecordOf(stored))
}

// storeVoice stores the voice of a submission and clears its vectors.
func (s *Server) storeVoice(r *request, v voiceSubmission) (accounts.Voice, error) {
	voice := v.voice
	if v.other != "" {
		return s.cfg.Accounts.MergeVoice(r.Context(), r.who.Account, v.other, voice)
	}
	if v.task != "" {
		var err error
		if voice, err = s.cfg.Tasks.SpeakerVoice(r.Context(), r.who.Account, v.task, v.speaker); err != nil {
			return accounts.Voice{}, err
		}
		voice.Name, voice.Consent = v.voice.Name, v.voice.Consent
	}
	register := voices.Register{Voices: []voices.Voice{voice}}
	defer register.Clear()
	if v.denied {
		return s.cfg.Accounts.DenyVoice(r.Context(), r.who.Account, voice)
	}
	return s.cfg.Accounts.AddVoice(r.Context(), r.who.Account, voice)
}

func (v *voiceSubmission) fields() jsonstream.Fields {
	return jsonstream.Fields{
		"name": text(&v.voice.Name, maxVoiceField), "consent": text(&v.voice.Consent, maxVoiceField), "model": text(&v.voice.Model, maxVoiceField),
		"task_id": text(&v.task, maxVoiceField), "speaker": text(&v.speaker, maxVoiceField), "voice_id": text(&v.other, maxVoiceField),
		"denied": func(value *jsonstream.Value) error { return value.Bool(&v.denied) },
		"vectors": func(value *jsonstream.Value) error {
			raw, err := value.Raw()
			if err != nil {
				return err
			}
			if json.Unmarshal(raw, &v.voice.Vectors) != nil || bytes.Contains(raw, []byte("null")) { // which Unmarshal skips
				return invalid("vectors: must be a list of lists of finite numbers")
			}
			return nil
		},
	}
}

// check validates the fields together, and normalizes the task's id.
func (v *voiceSubmission) check() error {
	named, given := v.task != "" || v.speaker != "", v.voice.Model != "" || v.voice.Vectors != nil
	switch {
	case v.voice.Name == "":
		return invalid("name: is required")
	case v.denied && (!named || v.voice.Consent != ""):
		return invalid("denied: requires task_id and speaker, and no consent: the speaker is not the named person")
	case !v.denied && strings.TrimSpace(v.voice.Consent) == "":
		return invalid("consent: is required: what the person consented to, and when")
	case named == given && (named || v.other == ""), v.other != "" && (named || given):
		return invalid("task_id and speaker, model and vectors, or voice_id: use only one of them")
	case named && (v.task == "" || v.speaker == ""):
		return invalid("task_id and speaker: both are required")
	case given && (v.voice.Model == "" || v.voice.Vectors == nil):
		return invalid("model and vectors: both are required")
	}
	var ok bool
	if v.other, ok = canonicalID(v.other); !ok && !named && !given {
		return notFound("voice_id: there is no such voice")
	}
	if v.task, ok = canonicalID(v.task); !ok && named {
		return notFound("task_id: there is no such task")
	}
	return nil
}

// deleteVoice handles DELETE /voices/:id, an addition to the specification.
func (s *Server) deleteVoice(w http.ResponseWriter, r *request) error {
	id, ok := canonicalID(r.PathValue("id"))
	if !ok {
		return notFound("there is no such voice")
	}
	return s.erased(w, r, id, "voice deleted", s.cfg.Accounts.DeleteVoice, s.cfg.Erasure.Voice)
}
