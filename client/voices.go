package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Voice is a voice registered with the account under a name.
type Voice struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Consent    string    `json:"consent"` // scope and date of the person's consent
	Model      string    `json:"model"`   // SHA-256 of the speaker model's file
	Recordings int       `json:"recordings"`
	AddedAt    time.Time `json:"added_at"`
}

// NewVoice is a voice to register, from a speaker of a finished task or from
// vectors of the service's speaker model. If the name exists, its voice gets a
// further recording.
type NewVoice struct {
	Name    string `json:"name"`
	Consent string `json:"consent"` // scope and date of the person's consent; required
	// TaskID and Speaker (in the task's SpeakerEmbeddings) name a speaker, or
	TaskID  string `json:"task_id,omitempty"`
	Speaker string `json:"speaker,omitempty"`
	// Model and Vectors describe the voice.
	Model   string      `json:"model,omitempty"`
	Vectors [][]float32 `json:"vectors,omitempty"`
}

// AddVoice registers a voice. Tasks with Options.Voices name the speakers who
// have it.
func (c *Client) AddVoice(ctx context.Context, v NewVoice) (Voice, error) {
	var kept Voice
	return kept, c.call(ctx, http.MethodPost, "/voices", v, &kept)
}

// Voices returns the account's registered voices, by name.
func (c *Client) Voices(ctx context.Context) ([]Voice, error) {
	var out struct {
		Voices []Voice `json:"voices"`
	}
	err := c.call(ctx, http.MethodGet, "/voices", nil, &out)
	return out.Voices, err
}

// DeleteVoice deletes a voice.
func (c *Client) DeleteVoice(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/voices/"+url.PathEscape(id), nil, nil)
}
