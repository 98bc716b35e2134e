package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/otograph/otograph/internal/service/tasks"
	"github.com/otograph/otograph/internal/system/blob"
)

// checkpoints stores stages of one task as files. The folder's name is a hash
// of the model set, options and audio, so that an attempt with others does not
// see them.
type checkpoints struct {
	blobs  *blob.Store
	prefix string
}

func newCheckpoints(blobs *blob.Store, c *tasks.Claim, modelSet string) (*checkpoints, error) {
	options, err := json.Marshal(c.Options)
	if err != nil {
		return nil, err
	}
	extras, err := json.Marshal(c.Extras.Extras)
	if err != nil {
		return nil, err
	}
	audioMD5 := ""
	if c.AudioMD5 != nil {
		audioMD5 = *c.AudioMD5
	}
	sum := sha256.New()
	for _, part := range []string{modelSet, audioMD5, string(options), string(extras)} {
		fmt.Fprintf(sum, "%d:%s,", len(part), part)
	}
	return &checkpoints{blobs: blobs, prefix: tasks.CheckpointPrefix(c.ID) + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"}, nil
}

var validStage = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Load implements Checkpoints.
func (c *checkpoints) Load(ctx context.Context, stage string) ([]byte, error) {
	if !validStage.MatchString(stage) {
		return nil, fmt.Errorf("worker: checkpoint %q: name is not valid", stage)
	}
	r, err := c.blobs.Open(ctx, c.prefix+stage)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Save implements Checkpoints.
func (c *checkpoints) Save(ctx context.Context, stage string, data []byte) error {
	if !validStage.MatchString(stage) {
		return fmt.Errorf("worker: checkpoint %q: name is not valid", stage)
	}
	return c.blobs.Put(ctx, c.prefix+stage, bytes.NewReader(data))
}
