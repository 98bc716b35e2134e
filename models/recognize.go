package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/files/weightfile"
	"github.com/otograph/otograph/spec"
)

// ErrUnsupported marks a valid file that no role uses. It wraps ErrBroken.
var ErrUnsupported = fmt.Errorf("%w: not supported", ErrBroken)

// ErrUnknown marks a valid ONNX model of no known family. It may still work
// with a contract that the user states. It wraps ErrUnsupported.
var ErrUnknown = fmt.Errorf("%w: an ONNX model of an unknown kind, which needs a contract (`otograph models import --contract`)", ErrUnsupported)

// Recognized describes a recognized model file.
type Recognized struct {
	Role Role
	// Contract is empty if the file fits several and does not state which (80 filter
	// banks in, 192 numbers out, no metadata); then the caller must choose.
	Contract string
	// Part is PartModel, or a part of a transducer.
	Part Part
	// Languages are the languages in the file's metadata, or for which a Whisper
	// model has tokens; empty if it has all.
	Languages []string
	// NoTranslation is set for a shape of Whisper models that do not translate.
	NoTranslation bool
	// SampleRate (Hz) is the rate in the file's metadata; 0 if it has none.
	SampleRate int
	// External names the data files that must be in the same folder.
	External []string
	// Signature lists the inputs and outputs on one line.
	Signature string
	// Candidates are the possible contracts if Contract is empty.
	Candidates []string
	// Helper marks a graph that belongs to a model but is not needed.
	Helper bool
}

// Recognize identifies a model file without loading it. The error names file,
// expected and actual value, and wraps ErrMissing, ErrUnsupported or ErrBroken.
func Recognize(path string) (*Recognized, error) {
	f, size, err := weightfile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s: no such file", ErrMissing, path)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer f.Close()
	found, err := recognize(f, size, filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// recognize is Recognize for a named file's bytes, without its name in errors.
func recognize(r io.ReaderAt, size int64, name string) (*Recognized, error) {
	var head [512]byte
	n, err := r.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if what := otherFormat(head[:n], name); what != "" {
		return nil, fmt.Errorf("%w: expected a ggml Whisper file or an ONNX model, found %s", ErrUnsupported, what)
	}
	if n >= 4 && binary.LittleEndian.Uint32(head[:]) == ggmlfile.Magic {
		w, err := ggmlfile.Check(r, size, false)
		if err != nil {
			return nil, notModel(err, ggmlfile.ErrNotWhisper)
		}
		found := &Recognized{
			Role: RoleStandard, Contract: ContractWhisper, Part: PartModel, NoTranslation: !w.Translates(),
			Signature: fmt.Sprintf("ggml Whisper, %d + %d layers of %d, %d mel bands, %d tokens", w.AudioLayers, w.TextLayers, w.AudioState, w.Mels, w.Vocabulary),
		}
		if all := spec.Languages(); w.Languages() < len(all) {
			for _, l := range all[:w.Languages()] {
				found.Languages = append(found.Languages, l.Code)
			}
		}
		return found, nil
	}
	h, err := onnxfile.Read(r, size)
	if err != nil {
		return nil, notModel(err, onnxfile.ErrInvalid)
	}
	for _, name := range h.External {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("%w: it names the data file %q: expected a plain name in the same folder", ErrBroken, name)
		}
	}
	found, err := Graph{Inputs: h.Inputs, Outputs: h.Outputs, Metadata: h.Metadata}.Recognize()
	if err != nil {
		return nil, err
	}
	found.External = h.External
	return found, nil
}

// notModel turns a header error, but not a read error, into ErrBroken.
func notModel(err, sentinel error) error {
	if errors.Is(err, sentinel) {
		return fmt.Errorf("%w: expected a ggml Whisper file or an ONNX model: %w", ErrBroken, err)
	}
	return err
}

// languagesIn returns the languages in a file's metadata: "languages" as a
// comma list, or SenseVoice's lang_xx keys.
func languagesIn(meta map[string]string) []string {
	var languages []string
	for _, code := range strings.Split(meta["languages"], ",") {
		if code = strings.ToLower(strings.TrimSpace(code)); ValidLanguage(code) && !slices.Contains(languages, code) {
			languages = append(languages, code)
		}
	}
	if languages != nil {
		return languages
	}
	for key := range meta {
		if code, ok := strings.CutPrefix(key, "lang_"); ok && ValidLanguage(code) {
			languages = append(languages, code)
		}
	}
	slices.Sort(languages)
	return languages
}

// ValidLanguage reports whether s looks like an ISO 639 code.
func ValidLanguage(s string) bool {
	return (len(s) == 2 || len(s) == 3) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

// ValidRate reports whether a sample rate (Hz) is plausible for audio.
func ValidRate(rate int) bool { return rate >= 8000 && rate <= 192000 }
