package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/whisperfolder"
)

// manifestName is the file in a model folder that lists its models.
const manifestName = "otograph.json"

// Limits on a manifest.
const (
	maxManifest = 1 << 20 // bytes
	maxModels   = 256
)

// manifest is otograph.json:
//
//	{
//	  "name": "my models",
//	  "roles": {
//	    "standard":  {"file": "ggml-small.bin", "license": "MIT"},
//	    "optimized": [{"name": "parakeet", "contract": "nemo-transducer",
//	                   "files": {"encoder": "encoder.int8.onnx", "decoder": "decoder.int8.onnx",
//	                             "joiner": "joiner.int8.onnx", "tokens": "tokens.txt"},
//	                   "languages": ["en", "fr"], "sha256": {"tokens.txt": "…"}}]
//	  }
//	}
//
// Only "roles" and a file for each are needed; the files state the rest.
type manifest struct {
	Name  string                      `json:"name,omitempty"`
	Roles map[string]oneOrMany[entry] `json:"roles"`
}

type entry struct {
	models.Model // its properties
	// File is short for Files with only a "model".
	File  string                 `json:"file,omitempty"`
	Files map[models.Part]string `json:"files,omitempty"`
	// SHA256 holds the hash of each file, by its name as in Files.
	SHA256 map[string]string `json:"sha256,omitempty"`
	// Source describes the origin of a converted model, and SourceSHA256 holds
	// the hashes of the original weight files by name.
	Source       string            `json:"source,omitempty"`
	SourceSHA256 map[string]string `json:"source_sha256,omitempty"`
}

// oneOrMany reads a JSON object or a list of them.
type oneOrMany[T any] []T

func (o *oneOrMany[T]) UnmarshalJSON(data []byte) error {
	*o = nil
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '[' {
		return strict(data, (*[]T)(o))
	}
	var one T
	if err := strict(data, &one); err != nil {
		return err
	}
	*o = oneOrMany[T]{one}
	return nil
}

func (o oneOrMany[T]) MarshalJSON() ([]byte, error) {
	if len(o) == 1 {
		return json.Marshal(o[0])
	}
	return json.Marshal([]T(o))
}

// strict decodes JSON and refuses unknown fields, because a mistyped field
// would otherwise be ignored silently.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("unexpected text after the JSON value")
	}
	return nil
}

// readManifest reads dir's manifest; it returns ErrMissing if dir has none.
func readManifest(dir string) (*manifest, error) {
	file := filepath.Join(dir, manifestName)
	data, err := whisperfolder.ReadText(file, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", models.ErrBroken, file, err)
	}
	return m, nil
}

// parseManifest decodes and checks a manifest. The error names the field.
func parseManifest(data []byte) (*manifest, error) {
	var m manifest
	if err := strict(data, &m); err != nil {
		return nil, err
	}
	count := 0
	for name, entries := range m.Roles {
		role, err := models.ParseRole(name)
		if err != nil {
			return nil, fmt.Errorf("roles: %w", err)
		}
		if name != string(role) {
			return nil, fmt.Errorf("roles: expected %q, found %q", role, name)
		}
		if len(entries) == 0 {
			return nil, fmt.Errorf("roles.%s: expected a model, found an empty list", name)
		}
		if len(entries) > 1 && role != models.RoleOptimized {
			return nil, fmt.Errorf("roles.%s: expected one model, found %d (only optimized takes several)", name, len(entries))
		}
		if count += len(entries); count > maxModels {
			return nil, fmt.Errorf("roles: more than %d models", maxModels)
		}
		seen := map[string]bool{}
		for i := range entries {
			at := fmt.Sprintf("roles.%s[%d]", name, i)
			if err := entries[i].check(role); err != nil {
				return nil, fmt.Errorf("%s.%w", at, err)
			}
			n := entries[i].name()
			if seen[n] {
				return nil, fmt.Errorf("%s.name: %q is used twice", at, n)
			}
			seen[n] = true
		}
	}
	return &m, nil
}

// check validates an entry and folds File into Files. Errors begin with the
// field's name.
func (e *entry) check(role models.Role) error {
	if e.File != "" {
		if len(e.Files) > 0 {
			return fmt.Errorf("file: expected file or files, found both")
		}
		e.Files, e.File = map[models.Part]string{models.PartModel: e.File}, ""
	}
	if len(e.Files) == 0 {
		return fmt.Errorf("files: expected at least one, found none")
	}
	for part, file := range e.Files {
		if !slices.Contains(partOrder, part) {
			return fmt.Errorf("files: part %q is not known: expected one of %v", part, partOrder)
		}
		if err := localName(file); err != nil {
			return fmt.Errorf("files.%s: %w", part, err)
		}
	}
	if e.main() == "" {
		return fmt.Errorf("files: expected a %q or an %q", models.PartModel, models.PartEncoder)
	}
	if served, ok := models.ContractRole(e.Contract); e.Contract != "" && (!ok || served != role) {
		return fmt.Errorf("contract: expected one of %s, found %q", strings.Join(models.ContractsOf(role), ", "), e.Contract)
	}
	for field, sums := range map[string]map[string]string{"sha256": e.SHA256, "source_sha256": e.SourceSHA256} {
		for file, sum := range sums {
			if !isSHA256(sum) {
				return fmt.Errorf("%s.%s: expected 64 hexadecimal digits, found %q", field, file, sum)
			}
		}
	}
	for _, h := range e.AlignmentHeads {
		if role != models.RoleStandard || min(h[0], h[1]) < 0 || max(h[0], h[1]) > maxHead {
			return fmt.Errorf("alignment_heads: expected pairs of layer and head of a standard model, 0 to %d, found %v", maxHead, h)
		}
	}
	for _, code := range e.Languages {
		if !models.ValidLanguage(code) {
			return fmt.Errorf("languages: expected ISO 639 codes, found %q", code)
		}
	}
	switch {
	case math.IsNaN(e.WindowSeconds) || e.WindowSeconds < 0 || e.WindowSeconds > 3600:
		return fmt.Errorf("window_seconds: expected 0 to 3600, found %g", e.WindowSeconds)
	case e.SampleRate != 0 && !models.ValidRate(e.SampleRate):
		return fmt.Errorf("sample_rate: expected 8000 to 192000, found %d", e.SampleRate)
	case math.IsNaN(e.SameSpeaker) || e.SameSpeaker < 0 || e.SameSpeaker >= 1:
		return fmt.Errorf("same_speaker: expected a cosine from 0 to below 1, found %g", e.SameSpeaker)
	case (e.OneVoice != 0 || e.TwoVoices != 0) && !(0 <= e.TwoVoices && e.TwoVoices < e.OneVoice && e.OneVoice < 1):
		return fmt.Errorf("two_voices, one_voice: expected two cosines in rising order from 0 to below 1, found %g and %g", e.TwoVoices, e.OneVoice)
	case math.IsNaN(e.KnownVoice) || e.KnownVoice < 0 || e.KnownVoice >= 1:
		return fmt.Errorf("known_voice: expected a cosine from 0 to below 1, found %g", e.KnownVoice)
	case e.Calibration != nil && !e.Calibration.Valid():
		return fmt.Errorf("calibration: expected numbers with a slope above 0, found slope %g and offset %g", e.Calibration.Slope, e.Calibration.Offset)
	}
	return nil
}

// maxHead is the highest layer or head that a Whisper model may have.
const maxHead = 127

// name returns the entry's name, or the name of its main file.
func (e *entry) name() string {
	if e.Name != "" {
		return e.Name
	}
	main := e.main()
	if dir := path.Dir(main); dir != "." {
		return path.Base(dir)
	}
	return stem(path.Base(main))
}

// localName checks a manifest's file name: a slash path inside the folder.
func localName(name string) error {
	if name == "" || strings.Contains(name, `\`) || !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) || name != path.Clean(name) || name == "." {
		return fmt.Errorf("expected a file inside the folder, found %q", name)
	}
	return nil
}

func isSHA256(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// writeJSON replaces a file atomically: a reader sees old or new content.
func writeJSON(file string, content any) error {
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".otograph-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(data, '\n'))
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
