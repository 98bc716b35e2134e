package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// ErrNoVector is returned for a speaker without a usable vector (HTTP 409).
var ErrNoVector = errors.New("the voice cannot be taken from this task")

// SpeakerVoice returns the voice of a speaker of a done task's result, without a
// name and a consent. Errors wrap ErrNotFound, ErrForbidden, ErrNotDone,
// ErrNoVector or voices.ErrVoice.
func (s *Owners) SpeakerVoice(ctx context.Context, account, task, speaker string) (v voices.Voice, err error) {
	r, err := s.Result(ctx, account, task)
	if err != nil {
		return v, err
	}
	defer r.Close()
	var model sql.NullString
	err = s.Config.DB.Read().QueryRowContext(ctx, "SELECT voice_model FROM tasks WHERE id = $1", task).Scan(&model)
	if errors.Is(err, sql.ErrNoRows) { // deleted at this moment
		err = fmt.Errorf("%w: %.40q", ErrNotFound, task)
	}
	if err != nil {
		return v, s.wrap("voice", err)
	}
	if !model.Valid {
		return v, fmt.Errorf("%w: it ran without diarization", ErrNoVector)
	}
	speakers := r.Head.SpeakerEmbeddings
	i := slices.IndexFunc(speakers, func(e spec.SpeakerEmbedding) bool { return e.SpeakerID == speaker })
	if i < 0 {
		err = fmt.Errorf("%w: speaker: there is no %q in the task's speaker_embeddings", voices.ErrVoice, spec.Shorten(speaker))
	} else {
		v = voices.Voice{Model: model.String, Vectors: [][]float32{slices.Clone(speakers[i].Embedding)}}
	}
	for _, e := range speakers {
		clear(e.Embedding)
	}
	return v, err
}
