// Package models says which model files do which work: the roles, the contracts,
// sets of models, and what a file is recognised as. Package models/library keeps
// them in folders and fetches them.
//
// The package reads model files only as bytes: it never loads them. What it
// reports about a file (its contract, its inputs and outputs) comes from the
// file's own header, so a wrong or hostile file is refused here, before native
// code sees it.
package models

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the work a model does in the pipeline.
type Role string

// The roles of the pipeline.
const (
	// RoleStandard is the recogniser of the standard tier: a ggml Whisper file.
	RoleStandard Role = "standard"
	// RoleOptimized is a recogniser of the optimized tier: a CTC-type ONNX
	// model. It is the one role that a set may fill several times, each model
	// for its own languages.
	RoleOptimized Role = "optimized"
	// RoleVAD is the voice activity detector.
	RoleVAD Role = "vad"
	// RoleEmbedder is the speaker embedder.
	RoleEmbedder Role = "embedder"
	// RoleSegmenter is the speaker segmentation network: it hears where voices
	// overlap. It is optional: without one, one voice speaks at a time.
	RoleSegmenter Role = "segmenter"
	// RoleTagger is the sound event tagger.
	RoleTagger Role = "tagger"
)

// Roles returns all roles in the order in which they are listed to people.
func Roles() []Role {
	return []Role{RoleStandard, RoleOptimized, RoleVAD, RoleEmbedder, RoleSegmenter, RoleTagger}
}

// Optional reports whether every stage does its work without a model of the role.
func (r Role) Optional() bool { return r == RoleSegmenter }

// ParseRole turns a word into a Role. The error names the word and the roles
// there are.
func ParseRole(s string) (Role, error) {
	r := Role(strings.ToLower(strings.TrimSpace(s)))
	if slices.Contains(Roles(), r) {
		return r, nil
	}
	names := make([]string, 0, len(Roles()))
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return "", fmt.Errorf("role %q is not known: expected one of %s", s, strings.Join(names, ", "))
}
