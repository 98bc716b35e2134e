package httpapi

import (
	"fmt"
	"io"

	"github.com/otograph/otograph/httpapi/internal/openai"
	"github.com/otograph/otograph/internal/blob"
	"github.com/otograph/otograph/internal/tasks"
	"github.com/otograph/otograph/spec"
)

// maxReference limits the recording of a known speaker, in bytes.
const maxReference = 8 << 20

// references holds the recordings of a form's known speakers, stored for a task
// that is about to be created.
type references struct {
	server *Server
	r      *request
	task   string   // the task's id, "" before there is a recording
	keys   []string // of the stored recordings
}

// keep stores a recording.
func (k *references) keep(from io.Reader) error {
	tools := k.server.cfg.Tasks
	if k.task == "" {
		id, err := tasks.NewID()
		if err != nil {
			return err
		}
		k.task = id
	}
	audio, err := tools.NewReference(k.r.Context(), k.task, len(k.keys))
	if err != nil {
		return err
	}
	n, err := copyAudio(audio, io.LimitReader(from, maxReference+1))
	if err == nil && n > maxReference {
		err = openai.BadReference(len(k.keys), fmt.Errorf("longer than %d bytes", maxReference))
	}
	var info blob.Info
	if err == nil {
		info, err = audio.Commit()
	}
	if err != nil {
		audio.Abort()
		return err
	}
	k.keys = append(k.keys, info.Key)
	return nil
}

// check checks the recordings' lengths, if they can be probed.
func (k *references) check() error {
	tools := k.server.cfg.Tasks
	if !tools.Probes() {
		return nil
	}
	for i, key := range k.keys {
		seconds, err := tools.Probe(k.r.Context(), k.r.who.Account, key, "reference")
		if gone := k.r.Context().Err(); gone != nil {
			return gone
		}
		// The worker rejects recordings that can't be probed.
		if err == nil && seconds > 0 && (seconds < spec.ShortestVoice-spec.VoiceSlack || seconds > spec.LongestVoice+spec.VoiceSlack) {
			return openai.BadReference(i, fmt.Errorf("expected %d to %d s of audio, found %.1f s", spec.ShortestVoice, spec.LongestVoice, seconds))
		}
	}
	return nil
}

// drop deletes them.
func (k *references) drop() {
	if len(k.keys) > 0 {
		k.server.cfg.Tasks.DropReferences(k.r.Context(), k.task, len(k.keys))
	}
}
