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
	//go:embed demo-whisper.bin.zst
	whisperZst []byte
	//go:embed demo-ctc.onnx.zst
	ctcZst []byte
	//go:embed demo-ctc-tokens.txt
	ctcTokens []byte
	//go:embed demo-ctc-lm.arpa.zst
	ctcLMZst []byte
)

// The embedded files. Sizes and hashes are of the unpacked bytes.
var (
	whisper = &packed.File{
		Name: "demo-whisper.bin", Data: &whisperZst, Planes: 1, Size: 20596021,
		SHA256: "0cf98510371567e4144f961c8ef0fc7f9cd04fe2f7ff7a08b0b6ad517c77739e",
	}
	ctc = &packed.File{
		Name: "demo-ctc.onnx", Data: &ctcZst, Planes: 1, Size: 6237043,
		SHA256: "32ab4cac47e3a7fa20f0221fa9c21a6421c4045ddc64d7034d1cead4f9041816",
	}
	ctcLM = &packed.File{
		Name: "demo-ctc-lm.arpa", Data: &ctcLMZst, Planes: 1, Size: 553888,
		SHA256: "e8bfdbb223a50df3167e2a430a5be294f557247538dfb3ce941b0fdf0ae5dedb",
	}
)

// license is the license of the recognizers: they contain no third-party
// weights and were not trained on a synthesizer's voice whose terms exclude
// commercial use or derivatives (training/asr/README.md).
const license = "MIT; trained from scratch on synthetic speech, no third-party weights"

// Figures of the models, measured after training.
const (
	// whisperWindow is the longest stretch (s) for demo-whisper. The error rate
	// of earlier weights on twelve recordings of one to two and a half minutes
	// was 6.8 % with windows up to 10 s, 6.0 % with 8 s and 5.5 % with 6 s,
	// which take 5 % longer than 8 s.
	whisperWindow = 6
	// ctcWindow is the longest stretch (s) that demo-ctc was trained on.
	ctcWindow = 20
)

// Models returns the set named "demo": the two recognizers, and for the other
// roles the published networks. A model is only unpacked when a file's Data is
// called. Each call returns a new Set, which the caller may change.
func Models() *models.Set {
	languages := func() []string { return []string{"en", "es", "fr", "pt", "de", "zh"} }
	// The calibrations were fitted to recordings of voices and sentences that no
	// model was trained on, clean and in white noise of 20 to 0 dB
	// (tools/confidence): 473 segments for demo-ctc, 192 for demo-whisper.
	// docs/measurements/confidence.md has the errors on other recordings.
	recognizers := []models.Model{
		{
			Role: models.RoleStandard, Name: "demo-whisper", Contract: models.ContractWhisper,
			Languages: languages(), WindowSeconds: whisperWindow, NoPrompts: true, NoTranslation: true, Calibration: &models.Calibration{Slope: 1.361, Offset: -0.263}, Demo: true, License: license,
			Files: []models.File{whisper.Part(models.PartModel)},
		},
		{
			Role: models.RoleOptimized, Name: "demo-ctc", Contract: models.ContractZipformerCTC,
			Languages: languages(), WindowSeconds: ctcWindow, Calibration: &models.Calibration{Slope: 0.675, Offset: 0.638}, Demo: true, License: license,
			Files: []models.File{
				ctc.Part(models.PartModel),
				{
					Part: models.PartTokens, Name: "demo-ctc-tokens.txt", Size: int64(len(ctcTokens)),
					SHA256: "ffc0aca7da779abbcfe700ba2ffdd93e22be93f494b26cd9f0ea37805309300d",
					Data:   func() ([]byte, error) { return ctcTokens, nil },
				},
				ctcLM.Part(models.PartLM),
			},
		},
	}
	return &models.Set{Name: "demo", Models: append(recognizers, published.Models().Models...)}
}
