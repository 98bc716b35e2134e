// Package demo embeds two small recognizers for demonstrations and tests, one
// for each tier. Otograph trained them from scratch on synthetic speech. With
// them, a fresh clone writes text without downloads; they do not work on real
// recordings. The folder tools/training documents their training and
// measurements. The other roles have the networks of package published.
//
// The package computes nothing at program start, so that the linker omits the
// models from a program that calls neither Models nor otograph.OpenDefault.
//
// The models are compressed with zstd and unpacked into memory when their bytes
// are requested; the memory is freed when they are no longer used. (xz packs
// them to the same size but took 0.9 s for the recognizer, zstd 0.03 s.)
package demo

import (
	_ "embed" // the models

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/packed"
	"github.com/otograph/otograph/models/published"
)

var (
	//go:embed models.json
	description []byte
	//go:embed demo-whisper.bin.zst
	whisper []byte
	//go:embed demo-ctc.onnx.zst
	ctc []byte
	//go:embed demo-ctc-tokens.txt
	ctcTokens []byte
	//go:embed demo-ctc-lm.arpa.zst
	ctcLM []byte
)

// Models returns the set named "demo": the two recognizers, and for the other
// roles the published networks. A model is only unpacked when a file's Data is
// called. Each call returns a new Set, which the caller may change.
//
// The recognizers contain no third-party weights and were not trained on a
// synthesizer's voice whose terms exclude commercial use or derivatives
// (training/asr/README.md). The longest window of demo-ctc is that of its
// training. For demo-whisper, the error rate of earlier weights on twelve
// recordings of one to two and a half minutes was 6.8 % with windows up to 10
// s, 6.0 % with 8 s and 5.5 % with 6 s, which take 5 % longer than 8 s. The
// calibrations were fitted to recordings of voices and sentences that no model
// was trained on, clean and in white noise of 20 to 0 dB (tools/confidence):
// 473 segments for demo-ctc, 192 for demo-whisper.
// docs/measurements/confidence.md has the errors on other recordings.
func Models() *models.Set {
	set := packed.Set(description, map[string][]byte{
		"demo-whisper.bin": whisper, "demo-ctc.onnx": ctc, "demo-ctc-tokens.txt": ctcTokens, "demo-ctc-lm.arpa": ctcLM,
	})
	set.Models = append(set.Models, published.Models().Models...)
	return set
}
