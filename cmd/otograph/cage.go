package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/otograph/otograph/audio"
)

// cageFlags configures the requirements on the decoder's sandbox.
type cageFlags struct {
	RequireCage bool `help:"Refuse to start unless the decoder's sandbox is complete: Landlock, seccomp and resource limits."`
}

// check tests the sandbox once, logs its active parts, and closes this
// process's memory to programs of the same user.
func (f *cageFlags) check(log *slog.Logger) error {
	if err := notDumpable(); err != nil {
		log.Warn("this process's memory can be read by programs of the same user", "error", err)
	}
	return f.judge(audio.Sandbox(), log)
}

// judge fails, or warns, if a part of the sandbox is missing.
func (f *cageFlags) judge(s audio.SandboxState, log *slog.Logger) error {
	whole := s.Landlock > 0 && s.Seccomp && s.NoNewPrivileges && s.CapabilitiesDropped && s.Limits
	switch {
	case s.Works && whole:
		log.Info("the decoder's sandbox is complete", "in_force", s.Strength())
	case f.RequireCage:
		return errors.New("--require-cage: the decoder's sandbox is incomplete: " + fmt.Sprintf("%s; %s", s.Strength(), strings.Join(s.Problems, "; ")))
	default:
		log.Warn("the decoder's sandbox is incomplete", "in_force", s.Strength(), "problems", s.Problems)
	}
	return nil
}
