package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/ggmlfile"
	"github.com/otograph/otograph/internal/onnxfile"
)

// ErrUnsupported marks a file that is sound but of a kind that no role uses. It
// is an ErrBroken, too.
var ErrUnsupported = fmt.Errorf("%w: not supported", ErrBroken)

// ErrUnknown marks a sound ONNX model that fits no known family. With a contract
// given by hand it may be one all the same. It is an ErrUnsupported, too.
var ErrUnknown = fmt.Errorf("%w: an ONNX model of an unknown kind", ErrUnsupported)

// Recognised is what a file turned out to be.
type Recognised struct {
	Role Role
	// Contract is empty when the file could be of several and does not tell
	// (80 filter banks in, 192 numbers out, no metadata): it must then be given.
	Contract string
	// Part is PartModel, or one of a transducer's.
	Part Part
	// Languages are those that the file itself names.
	Languages []string
	// SampleRate (Hz) is what the file itself names; 0 when it does not.
	SampleRate int
	// External names the data files that must lie beside it.
	External []string
	// Signature is what the file takes and gives, on one line.
	Signature string
	// Candidates are the contracts among which an empty one may be chosen.
	Candidates []string
	// Helper marks a graph that belongs to a model but is not needed.
	Helper bool
}

// Recognise looks into a model file and says what it is, without loading it. The
// error names the file, what was expected and what was found, and wraps
// ErrMissing, ErrUnsupported or ErrBroken.
func Recognise(path string) (*Recognised, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s: no such file", ErrMissing, path)
		}
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s: expected a model file, found a %s", ErrBroken, path, kind(info.Mode()))
	}
	found, err := recognise(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// recognise is Recognise on any bytes; its errors do not name the file.
func recognise(r io.ReaderAt, size int64) (*Recognised, error) {
	var head [8]byte
	n, err := r.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if what := foreign(head[:n]); what != "" {
		return nil, fmt.Errorf("%w: expected a ggml Whisper file or an ONNX model, found %s", ErrUnsupported, what)
	}
	if n >= 4 && binary.LittleEndian.Uint32(head[:]) == ggmlfile.Magic {
		w, err := ggmlfile.ReadWhisper(r, size)
		if err != nil {
			return nil, notModel(err, ggmlfile.ErrNotWhisper)
		}
		found := &Recognised{
			Role: RoleStandard, Contract: ContractWhisper, Part: PartModel,
			Signature: fmt.Sprintf("ggml Whisper, %d + %d layers of %d, %d mel bands, %d tokens", w.AudioLayer, w.TextLayer, w.AudioState, w.Mels, w.Vocab),
		}
		if !w.Multilingual() {
			found.Languages = []string{"en"}
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
	found, err := family(h)
	if err != nil {
		return nil, err
	}
	found.External = h.External
	if rate, err := strconv.Atoi(h.Metadata["sample_rate"]); err == nil && ValidRate(rate) {
		found.SampleRate = rate
	}
	found.Signature = h.Signature()
	return found, nil
}

// notModel turns a header error into ErrBroken, but leaves trouble with reading
// as it is.
func notModel(err, sentinel error) error {
	if errors.Is(err, sentinel) {
		return fmt.Errorf("%w: expected a ggml Whisper file or an ONNX model: %w", ErrBroken, err)
	}
	return err
}

// foreign names well-known file kinds that people try instead of a model.
func foreign(head []byte) string {
	s := string(head)
	switch {
	case len(head) == 0:
		return "an empty file"
	case strings.HasPrefix(s, "GGUF"):
		return "a GGUF file (whisper.cpp's models are the older ggml format)"
	case strings.HasPrefix(s, "PK\x03\x04"):
		return "a zip archive or PyTorch checkpoint (convert it: models/convert)"
	case strings.HasPrefix(s, "\x80\x02") || strings.HasPrefix(s, "\x80\x04"):
		return "a pickled PyTorch checkpoint (convert it: models/convert)"
	case len(s) >= 8 && s[4:8] == "TFL3":
		return "a TensorFlow Lite model"
	case strings.HasPrefix(s, "\x89HDF"):
		return "a Keras HDF5 file (convert it: models/convert)"
	case strings.HasPrefix(s, "BZh"):
		return "a bzip2 archive (run `otograph models import` on it)"
	case strings.HasPrefix(s, "\x1f\x8b"), strings.HasPrefix(s, "\xfd7zXZ"), strings.HasPrefix(s, "\x28\xb5\x2f\xfd"):
		return "a compressed file (unpack it first)"
	case strings.HasPrefix(s, "<!"), strings.HasPrefix(s, "<htm"):
		return "a web page (a download that went wrong?)"
	case strings.HasPrefix(s, "version "):
		return "a Git LFS pointer (the model itself was not downloaded)"
	}
	return ""
}

// family tells the ONNX families apart, in the order in which their marks are
// unambiguous.
func family(h *onnxfile.Header) (*Recognised, error) {
	if len(h.Inputs) == 0 {
		return nil, fmt.Errorf("%w; it has %s", ErrUnknown, h.Signature())
	}
	meta := h.Metadata
	modelType := meta["model_type"]
	in := func(names ...string) bool { return hasAll(h.Inputs, names) }
	out := func(names ...string) bool { return hasAll(h.Outputs, names) }
	one := len(h.Inputs) == 1
	first := h.Inputs[0]

	found := func(role Role, contract string, part Part) (*Recognised, error) {
		return &Recognised{Role: role, Contract: contract, Part: part, Languages: languagesIn(meta)}, nil
	}
	refuse := func(what string) (*Recognised, error) {
		return nil, fmt.Errorf("%w: %s; it has %s", ErrUnsupported, what, h.Signature())
	}

	switch {
	// Voice activity.
	case in("input", "state") && out("output", "stateN") && width(h, "state", 128):
		return found(RoleVAD, ContractSileroV5, PartModel)
	case in("input", "h", "c") && out("speech_probs", "hn", "cn"):
		return found(RoleVAD, ContractSileroSequence, PartModel)
	case in("input", "sr", "h", "c") && out("output", "hn", "cn") && width(h, "h", 64):
		return found(RoleVAD, ContractSileroV4, PartModel)
	case in("x", "h", "c") && out("prob"):
		return found(RoleVAD, ContractSileroV4K2, PartModel)
	case in("input", "h0", "c0"):
		return refuse("Silero VAD version 3: versions 4 to 6 are")

	// Recognisers that name themselves.
	case modelType == "zipformer2_ctc":
		if !in("x", "x_lens") || !out("log_probs") || len(h.Inputs) != 2 {
			return refuse("a Zipformer CTC model other than the offline export with inputs x and x_lens")
		}
		return found(RoleOptimized, ContractZipformerCTC, PartModel)
	case modelType == "wenet_ctc":
		return found(RoleOptimized, ContractWeNetCTC, PartModel)
	case strings.HasPrefix(modelType, "sense_voice"), len(h.Inputs) == 4 && in("language") && (in("text_norm") || in("textnorm")):
		return found(RoleOptimized, ContractSenseVoice, PartModel)
	case modelType == "paraformer", in("speech", "speech_lengths") && out("logits", "token_num"):
		return found(RoleOptimized, ContractParaformer, PartModel)

	// Recognisers without metadata.
	case in("x", "x_lens") && len(h.Inputs) == 2 && out("log_probs", "log_probs_len"):
		return found(RoleOptimized, ContractZipformerCTC, PartModel)
	case in("x", "x_lens") && len(h.Inputs) == 2 && out("log_probs", "log_probs_lens"):
		return found(RoleOptimized, ContractWeNetCTC, PartModel)

	// NeMo.
	case in("audio_signal", "length") && out("embs"), meta["framework"] == "nemo":
		return found(RoleEmbedder, ContractNeMoSpeaker, PartModel)
	case in("audio_signal", "length") && out("logprobs"):
		return found(RoleOptimized, ContractNeMoCTC, PartModel)
	case in("audio_signal", "length") && out("outputs", "encoded_lengths"):
		return found(RoleOptimized, ContractNeMoTransducer, PartEncoder)
	case in("encoder_outputs", "targets", "target_length") && out("outputs"):
		return found(RoleOptimized, ContractNeMoTransducer, PartDecoderJoint)
	case in("encoder_outputs", "decoder_outputs") && out("outputs"):
		return found(RoleOptimized, ContractNeMoTransducer, PartJoiner)
	case in("targets", "target_length") && out("outputs"):
		return found(RoleOptimized, ContractNeMoTransducer, PartDecoder)
	case in("waveforms", "waveforms_lens") && out("features"):
		r, err := found(RoleOptimized, ContractNeMoTransducer, "")
		r.Helper = true // the feature graph of onnx-asr; features are computed here
		return r, err

	// Sounds. They come before the embedders' shapes: CED's input is called feats.
	case modelType == "CED", in("feats") && out("prob"):
		return found(RoleTagger, ContractCED, PartModel)
	case in("x", "x_lens") && lastIs(h, 527) && !out("log_probs"):
		return found(RoleTagger, ContractZipformerTagger, PartModel)
	case one && first.Rank() == 1 && first.Type == onnxfile.Float32 && lastIs(h, 521):
		return found(RoleTagger, ContractYAMNet, PartModel)
	case one && first.Rank() == 3 && first.Shape[1] == 96 && first.Last() == 64 && lastIs(h, 521):
		return found(RoleTagger, ContractYAMNetPatches, PartModel)
	case one && first.Rank() == 2 && first.Type == onnxfile.Float32 && lastIs(h, 527):
		return found(RoleTagger, ContractPANNs, PartModel)
	case one && first.Rank() == 2 && first.Type == onnxfile.Float32 && lastIs(h, 521):
		return found(RoleTagger, ContractYAMNet, PartModel)

	// Speakers.
	case meta["framework"] == "wespeaker", in("feats") && out("embs"):
		return found(RoleEmbedder, ContractWeSpeaker, PartModel)
	case meta["framework"] == "3d-speaker", (in("feature") || in("x")) && out("embedding") && one && first.Last() == 80:
		return found(RoleEmbedder, Contract3DSpeaker, PartModel)
	case meta["framework"] == "speechbrain" && one && first.Last() == 80:
		return found(RoleEmbedder, ContractSpeechBrain, PartModel)
	case strings.HasPrefix(modelType, "pyannote-segmentation"), one && first.Rank() == 3 && first.Shape[1] == 1 && lastIs(h, 7):
		return found(RoleSegmenter, ContractPyannote, PartModel)
	case in("wav") && h.Inputs[0].Rank() == 2 && lastIs(h, 192):
		return found(RoleEmbedder, ContractSpeechBrainWave, PartModel)
	case one && first.Rank() == 3 && first.Last() == 80 && lastIs(h, 192):
		r, err := found(RoleEmbedder, "", PartModel)
		r.Candidates = []string{ContractWeSpeaker, Contract3DSpeaker, ContractSpeechBrain}
		return r, err

	// Known kinds that no role uses.
	case in("x", "x_lens") && out("encoder_out"):
		return refuse("an icefall transducer encoder: of icefall's models the CTC export is")
	case in("chunk", "offset"):
		return refuse("WeNet's own chunked export: the CTC export of k2-fsa is")
	case strings.Contains(modelType, "MultiTask"):
		return refuse("a NeMo Canary model")
	}
	return nil, fmt.Errorf("%w; it has %s", ErrUnknown, h.Signature())
}

// hasAll tells whether each name is among the values.
func hasAll(values []onnxfile.Value, names []string) bool {
	for _, name := range names {
		if _, ok := onnxfile.Find(values, name); !ok {
			return false
		}
	}
	return true
}

// width tells whether the last dimension of an input is n or free.
func width(h *onnxfile.Header, input string, n int64) bool {
	v, ok := onnxfile.Find(h.Inputs, input)
	return ok && (v.Last() == n || v.Last() == -1)
}

// lastIs tells whether an output's last dimension is n.
func lastIs(h *onnxfile.Header, n int64) bool {
	return slices.ContainsFunc(h.Outputs, func(v onnxfile.Value) bool { return v.Last() == n })
}

// languagesIn reads the languages that a file's metadata names: "languages" as
// a comma list, or SenseVoice's lang_xx keys.
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

// ValidLanguage reports whether s looks like an ISO 639 code of two or three letters.
func ValidLanguage(s string) bool {
	return (len(s) == 2 || len(s) == 3) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

// ValidRate reports whether a sample rate (Hz) is one that audio has.
func ValidRate(rate int) bool { return rate >= 8000 && rate <= 192000 }
