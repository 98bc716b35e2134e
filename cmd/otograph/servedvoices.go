package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/diarize"
	"github.com/otograph/otograph/models"
)

// voiceModel is the speaker model of a worker's set.
type voiceModel struct {
	set  *models.Set
	hash func() (string, error) // of its file, read once
}

func newVoiceModel(set *models.Set) *voiceModel {
	return &voiceModel{set, sync.OnceValues(func() (string, error) { return embedderHash(set) })}
}

// name returns the JSON of a result whose speakers have the names of the voices that
// an account knows. Beside the specification's fields it has voices, who was
// recognized, and warnings, why nobody could be.
func (m *voiceModel) name(res *otograph.Result, register *diarize.Register) ([]byte, error) {
	var known []knownVoice
	warning, err := m.reason(res, register)
	if err != nil {
		return nil, err
	}
	if warning == "" {
		hash, err := m.hash()
		if err != nil {
			return nil, err
		}
		model, err := m.set.Need(models.RoleEmbedder)
		if err != nil {
			return nil, err
		}
		known = (&knownVoices{register, hash, knownVoiceCosine(model)}).identify(res)
	}
	return servedResult(named(res, known), known, warning)
}

// reason says why no speaker of a result can be recognized, "" if one can.
func (m *voiceModel) reason(res *otograph.Result, register *diarize.Register) (string, error) {
	switch {
	case !res.Ran.Diarize:
		return "has no effect without speaker diarization (enable_diarize)", nil
	case len(register.Voices) == 0:
		return "the account knows no voices: POST /voices keeps one", nil
	case len(res.SpeakerEmbeddings) == 0:
		return "", nil
	}
	model, found := m.set.Role(models.RoleEmbedder)
	if !found {
		return "the worker has no speaker model, so nobody's voice can be recognized", nil
	}
	hash, err := m.hash()
	if err == nil && !hasModel(register, hash) {
		return fmt.Sprintf("none of the account's %d voices is of the speaker model %s (%.8s): add them from tasks that it ran", len(register.Voices), model.Name, hash), nil
	}
	return "", err
}

// servedResult writes a result with what it has beside the specification's fields.
func servedResult(res *otograph.Result, known []knownVoice, warning string) ([]byte, error) {
	out, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	if known == nil {
		known = []knownVoice{}
	}
	warnings := []servedWarning{}
	if warning != "" {
		warnings = append(warnings, servedWarning{"voices", warning})
	}
	more, err := json.Marshal(struct {
		Voices   []knownVoice    `json:"voices"`
		Warnings []servedWarning `json:"warnings"`
	}{known, warnings})
	return slices.Concat(bytes.TrimSuffix(out, []byte("}")), []byte(","), more[1:]), err
}

// servedWarning says why an option had no effect.
type servedWarning struct {
	Option string `json:"option"`
	Reason string `json:"reason"`
}
