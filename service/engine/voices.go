package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/diarize/networks"
	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/spec"
	"github.com/otograph/otograph/voices"
)

// voiceModel is the speaker model of a worker's set.
type voiceModel struct {
	set   *models.Set
	begun fileStamp // of the model's file, before the pipeline opened it
	mu    sync.Mutex
	sum   string // hash of the file, "" before it could be read
}

// fileStamp detects whether a file was changed.
type fileStamp struct {
	size int64
	time time.Time
}

// newVoiceModel returns a set's speaker model with its file's stamp. Call it
// before the pipeline opens it, which Pipeline.Load or the first run does.
func newVoiceModel(set *models.Set, log *slog.Logger) *voiceModel {
	m := &voiceModel{set: set}
	if _, found := set.Role(models.RoleEmbedder); !found {
		return m
	}
	m.begun, _ = m.stamp() // if the file is missing, hashing it fails too
	if _, err := m.hash(); err != nil {
		log.Warn("the speaker model was not hashed: voices cannot be recognized until it is", "error", err)
	}
	return m
}

// stamp returns the stamp of the model's file, zero for an embedded file.
func (m *voiceModel) stamp() (fileStamp, error) {
	model, err := m.set.Need(models.RoleEmbedder)
	if err != nil || model.Main().Path == "" {
		return fileStamp{}, err
	}
	info, err := os.Stat(model.Main().Path)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{info.Size(), info.ModTime()}, nil
}

// hash returns the SHA-256 of the file that the pipeline opened. It fails if
// the file has changed since the worker began. Errors are not cached.
func (m *voiceModel) hash() (sum string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sum = m.sum; sum == "" {
		model, err := m.set.Need(models.RoleEmbedder)
		if err != nil {
			return "", err
		}
		if sum, err = model.Hash(); err != nil {
			return "", err
		}
	}
	now, err := m.stamp()
	if err == nil && now != m.begun {
		err = errors.New("the speaker model's file was changed after the worker started: restart the worker")
	}
	if err != nil {
		return "", err
	}
	m.sum = sum
	return sum, nil
}

// name returns a result whose speakers are named after the account's known
// voices, together with the recognized voices or the reason why none could be
// recognized. hash is the hash of the speaker model that ran, "" if unknown.
func (m *voiceModel) name(res *otograph.Result, register *voices.Register, hash string) (*otograph.Result, *tasks.Recognized) {
	matches, warning := m.identify(res, register, hash)
	recognized := &tasks.Recognized{Voices: append([]voices.Match{}, matches...), Warnings: []spec.Warning{}}
	if warning != "" {
		recognized.Warnings = append(recognized.Warnings, spec.Warning{Option: "voices", Reason: warning})
	}
	return voices.Rename(res, matches), recognized
}

// identify returns the speakers of a result whose voices are in the register,
// or the reason why none can be recognized.
func (m *voiceModel) identify(res *otograph.Result, register *voices.Register, hash string) (matches []voices.Match, reason string) {
	model, found := m.set.Role(models.RoleEmbedder)
	switch {
	case !res.Ran.Diarize:
		return nil, "has no effect without speaker diarization (enable_diarize)"
	case len(register.Voices) == 0:
		return nil, "the account has no voices: add one with POST /voices"
	case !found:
		return nil, "the worker has no speaker model, so no voice can be recognized"
	case len(res.SpeakerEmbeddings) == 0:
		return nil, ""
	case hash == "":
		return nil, "the worker could not identify its speaker model, so no voice can be recognized"
	}
	if !register.Has(hash) {
		return nil, fmt.Sprintf("none of the account's %d voices was made with the speaker model %s (%.8s): add them again from tasks that used it", len(register.Voices), model.Name, hash)
	}
	return register.Identify(hash, res.SpeakerEmbeddings, networks.KnownVoice(model)), ""
}
