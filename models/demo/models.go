// Package demo embeds six small models for demonstrations and tests. Otograph
// trained them from scratch on synthetic speech and sound, the speaker model
// also on recordings of people. With them, a fresh clone works without
// downloads; they do not work on real recordings. The folder tools/training
// documents their training and measurements.
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

	"github.com/otograph/otograph/internal/files/packed"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/embedded"
)

var (
	//go:embed demo-whisper.bin.zst
	whisperZst []byte
	//go:embed demo-ctc.onnx
	ctcONNX []byte
	//go:embed demo-ctc-tokens.txt
	ctcTokens []byte
	//go:embed demo-ctc-lm.arpa.zst
	ctcLMZst []byte
	//go:embed demo-vad.onnx.zst
	vadZst []byte
	//go:embed demo-speaker.onnx.zst
	speakerZst []byte
	//go:embed demo-speaker-strangers.i8
	strangersI8 []byte
	//go:embed demo-segmenter.onnx.zst
	segmenterZst []byte
	//go:embed demo-tagger.onnx.zst
	taggerZst []byte
)

// The embedded files. Sizes and hashes are of the unpacked bytes.
var (
	whisper = &packed.File{
		Name: "demo-whisper.bin", Data: &whisperZst, Planes: 1, Size: 20596021,
		SHA256: "0cf98510371567e4144f961c8ef0fc7f9cd04fe2f7ff7a08b0b6ad517c77739e",
	}
	ctc = &packed.File{
		Name: "demo-ctc.onnx", Data: &ctcONNX, Planes: 0, Size: 6237043,
		SHA256: "32ab4cac47e3a7fa20f0221fa9c21a6421c4045ddc64d7034d1cead4f9041816",
	}
	ctcLM = &packed.File{
		Name: "demo-ctc-lm.arpa", Data: &ctcLMZst, Planes: 1, Size: 553888,
		SHA256: "e8bfdbb223a50df3167e2a430a5be294f557247538dfb3ce941b0fdf0ae5dedb",
	}
	vad = &packed.File{
		Name: "demo-vad.onnx", Data: &vadZst, Planes: 4, Size: 455957,
		SHA256: "da432ee9bf83f69a9be3b3bc78b62381f9629be43e01d07fcf9a3b4a68d3cf6e",
	}
	speaker = &packed.File{
		Name: "demo-speaker.onnx", Data: &speakerZst, Planes: 4, Size: 1494709,
		SHA256: "0f0d211e7695d026ee7962bf97ec53ed5dbbdb4d98f8f36e0ba2f9155f753ac5",
	}
	segmenter = &packed.File{
		Name: "demo-segmenter.onnx", Data: &segmenterZst, Planes: 4, Size: 772303,
		SHA256: "cb00202dbf06d05cf0918fe2da7e785f37b2816dddcd07a2668931b2375762c5",
	}
	tagger = &packed.File{
		Name: "demo-tagger.onnx", Data: &taggerZst, Planes: 4, Size: 962134,
		SHA256: "96b746dfdea0dd885d82293afe6d91b07246c33c7233604f5b5162b7eca09549",
	}
)

// license is the license of the embedded models: they contain no third-party
// weights and were not trained on a synthesizer's voice whose terms exclude
// commercial use or derivatives (training/asr/README.md).
const license = "MIT; trained from scratch on synthetic speech and sound, no third-party weights"

// speakerLicense is demo-speaker's license, with the authors of the recordings
// of people that it was trained on (training/sound/README.md has the list).
const speakerLicense = "MIT; trained on synthetic speech and on recordings of people: Speech Commands (P. Warden, Google, CC BY 4.0), " +
	"Arabic Speech Commands (A. Ghandoura, CC BY 4.0), Free Spoken Digit Dataset (Z. Jackson and others, CC BY-SA 4.0), " +
	"Asterisk's prompts (CC BY-SA 3.0), LibriSpeech (V. Panayotov and others, CC BY 4.0) and sounds of free software, no third-party weights"

// Figures of the models, measured after training.
const (
	// whisperWindow is the longest stretch (s) for demo-whisper. The error rate
	// of earlier weights on twelve recordings of one to two and a half minutes
	// was 6.8 % with windows up to 10 s, 6.0 % with 8 s and 5.5 % with 6 s,
	// which take 5 % longer than 8 s.
	whisperWindow = 6
	// ctcWindow is the longest stretch (s) that demo-ctc was trained on.
	ctcWindow = 20
	// sameSpeaker is the cosine above which two averaged voices of demo-speaker
	// belong to one person. It was chosen from 0.53 to 0.66 on ten recordings of
	// people; with it and with 0.53, the six test conversations of synthetic
	// voices have the right number of voices.
	sameSpeaker = 0.60
)

// Calibrations of the recognizers, fitted to recordings of voices and sentences
// that no model was trained on, clean and in white noise of 20 to 0 dB
// (tools/confidence): 473 segments for demo-ctc, 192 for demo-whisper.
// docs/measurements/confidence.md has the calibration errors on other recordings.
func ctcCalibration() *models.Calibration { return &models.Calibration{Slope: 0.675, Offset: 0.638} }

func whisperCalibration() *models.Calibration {
	return &models.Calibration{Slope: 1.361, Offset: -0.263}
}

// Models returns the set of the six embedded models, named "demo". A model is
// only unpacked when a file's Data is called. Each call returns a new Set,
// which the caller may change.
func Models() *models.Set {
	languages := func() []string { return []string{"en", "es", "fr", "pt", "de", "zh"} }
	return &models.Set{Name: "demo", Models: []models.Model{
		{
			Role: models.RoleStandard, Name: "demo-whisper", Contract: models.ContractWhisper,
			Languages: languages(), WindowSeconds: whisperWindow, NoPrompts: true, NoTranslation: true, Calibration: whisperCalibration(), Demo: true, License: license,
			Files: []models.File{embedded.File(models.PartModel, whisper)},
		},
		{
			Role: models.RoleOptimized, Name: "demo-ctc", Contract: models.ContractZipformerCTC,
			Languages: languages(), WindowSeconds: ctcWindow, Calibration: ctcCalibration(), Demo: true, License: license,
			Files: []models.File{
				embedded.File(models.PartModel, ctc),
				{
					Part: models.PartTokens, Name: "demo-ctc-tokens.txt", Size: int64(len(ctcTokens)),
					SHA256: "ffc0aca7da779abbcfe700ba2ffdd93e22be93f494b26cd9f0ea37805309300d",
					Data:   func() ([]byte, error) { return ctcTokens, nil },
				},
				embedded.File(models.PartLM, ctcLM),
			},
		},
		{
			Role: models.RoleVAD, Name: "demo-vad", Contract: models.ContractSileroV5,
			SampleRate: 16000, Demo: true, License: license,
			Files: []models.File{embedded.File(models.PartModel, vad)},
		},
		{
			Role: models.RoleEmbedder, Name: "demo-speaker", Contract: models.ContractWeSpeaker,
			SampleRate: 16000, SameSpeaker: sameSpeaker, Strangers: strangers, Demo: true, License: speakerLicense,
			Files: []models.File{embedded.File(models.PartModel, speaker)},
		},
		{
			Role: models.RoleSegmenter, Name: "demo-segmenter", Contract: models.ContractPyannote,
			SampleRate: 16000, Demo: true, License: license,
			Files: []models.File{embedded.File(models.PartModel, segmenter)},
		},
		{
			Role: models.RoleTagger, Name: "demo-tagger", Contract: models.ContractYAMNet,
			SampleRate: 16000, Demo: true, License: license,
			Files: []models.File{embedded.File(models.PartModel, tagger)},
		},
	}}
}
