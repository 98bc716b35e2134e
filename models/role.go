// Package models describes model files: roles, contracts, sets of models, and
// how files are recognized. Package models/library manages and downloads them.
//
// The package never loads a model; it only reads its bytes. It takes a file's
// contract, inputs and outputs from the file's header, so that an invalid or
// hostile file is refused before native code sees it.
package models

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a model's job in the pipeline.
type Role string

// The roles of the pipeline.
const (
	// RoleStandard is the recognizer of the standard tier: a ggml Whisper file.
	RoleStandard Role = "standard"
	// RoleOptimized is a recognizer of the optimized tier: CTC-type ONNX. Only
	// for this role may a set have several models, by language.
	RoleOptimized Role = "optimized"
	// RoleVAD is the voice activity detector.
	RoleVAD Role = "vad"
	// RoleEmbedder is the speaker embedder.
	RoleEmbedder Role = "embedder"
	// RoleSegmenter is the speaker segmentation network, which detects
	// overlapping voices. Without one, voices are assumed not to overlap.
	RoleSegmenter Role = "segmenter"
	// RoleTagger is the sound event tagger.
	RoleTagger Role = "tagger"
)

// Roles returns all roles in display order.
func Roles() []Role {
	return []Role{RoleStandard, RoleOptimized, RoleVAD, RoleEmbedder, RoleSegmenter, RoleTagger}
}

// Optional reports whether every stage works without a model of the role.
func (r Role) Optional() bool { return r == RoleSegmenter }

// ParseRole parses a role. The error names the word and the valid roles.
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
