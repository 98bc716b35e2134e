package main

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otograph/otograph/audio"
)

// TestRequireCage: an incomplete sandbox is a warning, or an error with
// --require-cage.
func TestRequireCage(t *testing.T) {
	whole := audio.SandboxState{Works: true, Landlock: 6, Seccomp: true, NoNewPrivileges: true, CapabilitiesDropped: true, Limits: true}
	noLandlock, noFFmpeg := whole, whole
	noLandlock.Landlock, noLandlock.Problems = 0, []string{"no Landlock"}
	noFFmpeg.Works = false
	for name, tt := range map[string]struct {
		state audio.SandboxState
		whole bool
	}{"whole": {whole, true}, "no Landlock": {noLandlock, false}, "no ffmpeg": {noFFmpeg, false}} {
		for _, required := range []bool{false, true} {
			var text bytes.Buffer
			err := (&cageFlags{RequireCage: required}).judge(tt.state, slog.New(slog.NewTextHandler(&text, nil)))
			assert.Equal(t, required && !tt.whole, err != nil, name)
			assert.Equal(t, !required && !tt.whole, bytes.Contains(text.Bytes(), []byte("level=WARN")), name)
		}
	}
}
