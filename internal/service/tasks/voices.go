package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// ErrNoVector is returned for a speaker without a usable vector (HTTP 409).
var ErrNoVector = errors.New("the voice cannot be taken from this task")

// mostMoved is the largest share of a speaker's time that corrections may give
// to others before the speaker's vector no longer counts as one person's.
const mostMoved = 0.1

// SpeakerVoice returns the voice of a speaker of a done task's result, without
// a name and a consent. A speaker who lost much time to others by corrections,
// or whom corrections added, has no usable vector. Errors wrap ErrNotFound,
// ErrForbidden, ErrNotDone, ErrNoVector or voices.ErrVoice.
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
	if err := s.uncorrected(ctx, account, r, speaker); err != nil {
		return v, err
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

// uncorrected returns ErrNoVector if the vector of a speaker was computed from
// sentences that corrections assigned to others.
func (s *Owners) uncorrected(ctx context.Context, account string, r *Result, speaker string) error {
	log, err := s.Corrections(ctx, account, r.Task.ID)
	if err != nil || len(log) == 0 {
		return err
	}
	corrected, err := r.Whole()
	if err == nil {
		err = corrections.Apply(corrected, log)
	}
	if err != nil {
		return err
	}
	before, after := turnsOf(r.Head.DiarizeSegments, speaker), turnsOf(corrected.DiarizeSegments, speaker)
	had, kept := 0.0, 0.0
	for _, t := range before {
		had += t.End - t.Start
		for _, now := range after {
			kept += max(0, min(t.End, now.End)-max(t.Start, now.Start))
		}
	}
	if kept >= had*(1-mostMoved) && (had > 0 || len(after) == 0) {
		return nil
	}
	return fmt.Errorf("%w: corrections changed which sentences are of %s: add the voice from the recording, with otograph voices add --of %[2]s --transcript and the corrected result", ErrNoVector, spec.Shorten(speaker))
}

func turnsOf(turns []spec.Turn, speaker string) []spec.Turn {
	return slices.DeleteFunc(slices.Clone(turns), func(t spec.Turn) bool { return t.Speaker != speaker })
}
