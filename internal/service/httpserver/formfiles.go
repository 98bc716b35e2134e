package httpserver

import (
	"fmt"
	"io"

	"github.com/otograph/otograph/internal/service/openai"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
	"github.com/otograph/otograph/spec"
)

// maxReference limits the recording of a known speaker, in bytes.
const maxReference = 8 << 20

// formFiles holds the files of a form, stored for a task that is about to be
// created.
type formFiles struct {
	server *Server
	r      *request
	audio  *blob.Writer // nil before there is one
	task   string       // the task's id, "" before there is a recording of a speaker
	keys   []string     // of the recordings of known speakers
	owned  bool         // the task exists
}

// keepAudio stores the audio.
func (k *formFiles) keepAudio(filename string, from io.Reader) (err error) {
	k.audio, err = k.server.storeAudio(k.r.Context(), filename, from)
	return err
}

// keepReference stores the recording of a known speaker.
func (k *formFiles) keepReference(from io.Reader) error {
	tools := k.server.cfg.Tasks
	if k.task == "" {
		k.task = tasks.NewID()
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

// check checks the lengths of the speakers' recordings, if they can be probed.
func (k *formFiles) check() error {
	for i, key := range k.keys {
		seconds, err := k.server.cfg.Tasks.Measure(k.r.Context(), k.r.who.Account, "", key, "reference")
		if err != nil {
			return err
		}
		// The worker rejects recordings of unknown length.
		if seconds > 0 && (seconds < spec.ShortestVoice-spec.VoiceSlack || seconds > spec.LongestVoice+spec.VoiceSlack) {
			return openai.BadReference(i, fmt.Errorf("expected %d to %d s of audio, found %.1f s", spec.ShortestVoice, spec.LongestVoice, seconds))
		}
	}
	return nil
}

// drop deletes the files unless the task owns them.
func (k *formFiles) drop() {
	if k.audio != nil {
		k.audio.Abort() // does nothing after Commit
	}
	if len(k.keys) > 0 && !k.owned {
		k.server.cfg.Tasks.DropReferences(k.r.Context(), k.task, len(k.keys))
	}
}
