package models

import (
	"encoding/binary"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/weightfile"
)

// otherFormat describes a file commonly mistaken for a model, and a remedy; ""
// for other files. head is the file's first 512 bytes, or the whole file.
func otherFormat(head []byte, name string) string {
	s := string(head)
	switch {
	case len(head) == 0:
		return "an empty file"
	case strings.HasPrefix(s, "GGUF"):
		return "a GGUF file, which other programs read (whisper.cpp's models are the older ggml format): run `otograph models pull whisper-base-q8_0`, " +
			"or `otograph models import FOLDER` on the safetensors from which it was made"
	case strings.HasPrefix(s, "PK\x03\x04"):
		return zipFormat(head, name)
	case strings.HasPrefix(s, "\x80\x02") || strings.HasPrefix(s, "\x80\x04"):
		return pickleFormat(name)
	case strings.HasPrefix(cut(s, 4), "TFL3"):
		return "a TensorFlow Lite model"
	case strings.HasPrefix(s, "\x89HDF"):
		return "a Keras HDF5 file (convert it: tools/convert)"
	case strings.HasSuffix(strings.ToLower(name), ".nemo"), strings.HasPrefix(cut(s, 257), "ustar") && strings.Contains(s[:100], "model_config.yaml"):
		return "a NeMo checkpoint (.nemo): run `otograph models pull parakeet-tdt-0.6b-v3-int8`, or export it in NeMo (`model.export(\"model.onnx\")`) and import the result"
	case strings.HasPrefix(s, "BZh"):
		return "a bzip2 archive (run `otograph models import` on it)"
	case strings.HasPrefix(s, "\x1f\x8b"), strings.HasPrefix(s, "\xfd7zXZ"), strings.HasPrefix(s, "\x28\xb5\x2f\xfd"):
		return "a compressed file (unpack it first)"
	case strings.HasPrefix(s, "<!"), strings.HasPrefix(s, "<htm"):
		return "a web page (a download that went wrong?)"
	case strings.HasPrefix(s, "version "):
		return "a Git LFS pointer (the model itself was not downloaded)"
	case weightfile.IsSafetensors(head) && mlx.MatchString(s):
		return appleWhisper
	case weightfile.IsSafetensors(head):
		return "a safetensors file: if it is Whisper, run `otograph models import FOLDER` on the folder with its config.json; other networks are needed as ONNX"
	case parakeet(head):
		return "a Parakeet model of whisper.cpp (ggml-parakeet): run `otograph models pull parakeet-tdt-0.6b-v3-int8`, the same network as ONNX"
	}
	if spec, ok := weightfile.CTranslate2Spec(head); ok {
		if spec == weightfile.WhisperSpec {
			return "a Whisper model of CTranslate2: run `otograph models import FOLDER` on its folder"
		}
		return fmt.Sprintf("a CTranslate2 model of kind %.40q: only Whisper is supported", spec)
	}
	return ""
}

// mlx matches the first entry of a NumPy archive, or a tensor of a safetensors
// file, that holds Whisper for Apple's MLX: by OpenAI's names.
var mlx = regexp.MustCompile(`^(en|de)coder\.|"(en|de)coder\.(blocks|ln|positional_embedding|token_embedding)`)

const appleWhisper = "a Whisper model of Apple's MLX; transformers publishes the same weights: run `hf download openai/whisper-large-v3-turbo --local-dir turbo` and `otograph models import turbo`"

// cut returns s without its first n bytes.
func cut(s string, n int) string { return s[min(n, len(s)):] }

// zipFormat describes a zip file by the name of its first entry.
func zipFormat(head []byte, name string) string {
	const at = 30 // offset of the first entry's name
	first := ""
	if len(head) > at {
		n := int(binary.LittleEndian.Uint16(head[26:]))
		first = string(head[at:min(at+n, len(head))])
	}
	switch {
	case mlx.MatchString(first):
		return appleWhisper
	case strings.HasSuffix(first, ".npy"):
		return "a NumPy archive (.npz), as the clustering of pyannote's community models has them, which Otograph does not use: run `otograph models pull balanced` for a speaker embedder"
	case strings.HasSuffix(first, "data.pkl"):
		return pickleFormat(name)
	}
	return "a zip archive or PyTorch checkpoint (convert it: tools/convert)"
}

// openAI lists the names of the published Whisper checkpoints (.pt).
var openAI = []string{
	"tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en",
	"large", "large-v1", "large-v2", "large-v3", "large-v3-turbo",
}

// pickleFormat explains how to get a PyTorch checkpoint's weights.
func pickleFormat(name string) string {
	own := strings.TrimSuffix(name, path.Ext(name))
	switch {
	case slices.Contains(openAI, own):
		return fmt.Sprintf("a PyTorch checkpoint of OpenAI; transformers publishes its weights as safetensors: run `hf download openai/whisper-%s --local-dir whisper-%s` and `otograph models import whisper-%s`", own, own, own)
	case name == "pytorch_model.bin":
		return "a pickled PyTorch checkpoint of transformers: save it as safetensors " +
			"(`python -c 'import transformers as t; t.WhisperForConditionalGeneration.from_pretrained(\"FOLDER\").save_pretrained(\"NEW\")'`) and run `otograph models import NEW`"
	}
	return "a pickled PyTorch checkpoint: for Whisper, run `otograph models import FOLDER` on the same weights as safetensors (openai/whisper-base and its kin); other networks: tools/convert"
}

// parakeet reports whether a ggml file holds a Parakeet model: 5,000 positions,
// a transform's size after the type, and a subsampling of 8 in its header.
func parakeet(head []byte) bool {
	var h [10]int32 // magic, vocabulary, positions, …, bands, type, transform, subsampling
	_, err := binary.Decode(head, binary.LittleEndian, &h)
	return err == nil && h[0] == ggmlfile.Magic && h[2] != 1500 && (h[6] == 80 || h[6] == 128) && h[8] == 512
}
