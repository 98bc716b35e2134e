// Package published embeds small published networks for every role but
// transcription, so that a program hears voices and sounds without a download:
// Silero for voice activity, CAM++ for voices, pyannote's segmentation for
// simultaneous voices and YAMNet for sounds. NOTICE has their authors and
// licenses, tools/convert the programs that made the files.
//
// The package computes nothing at program start, so that the linker omits the
// networks from a program that calls neither Models nor otograph.OpenDefault.
package published

import (
	_ "embed" // the networks

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/internal/packed"
)

var (
	//go:embed silero-v6.2.1.onnx.zst
	sileroZst []byte
	//go:embed campplus-zh-en.onnx.zst
	campplusZst []byte
	//go:embed pyannote-segmentation-3.0.onnx.zst
	segmentationZst []byte
	//go:embed yamnet.onnx.zst
	yamnetZst []byte
)

// The embedded files. Sizes and hashes are of the unpacked bytes. Silero's file
// is the publisher's; the weights of CAM++ and the segmentation are rounded to
// 8 bits (tools/convert/round_weights.py).
var (
	silero = &packed.File{
		Name: "silero-v6.2.1.onnx", Data: &sileroZst, Planes: 4, Size: 2327524,
		SHA256: "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
	}
	campplus = &packed.File{
		Name: "campplus-zh-en.onnx", Data: &campplusZst, Planes: 4, Size: 28280990,
		SHA256: "85894c079641be3a57b779c8c61beb4f8a4dfe6945ba30293e61a6416d64c656",
	}
	segmentation = &packed.File{
		Name: "pyannote-segmentation-3.0.onnx", Data: &segmentationZst, Planes: 4, Size: 5984646,
		SHA256: "952b946e6c5ead4106734965a892f9cf961277f1e8aeefd64b2a5636b37c2619",
	}
	yamnet = &packed.File{
		Name: "yamnet.onnx", Data: &yamnetZst, Planes: 1, Size: 3815293,
		SHA256: "e711c3024a9affea3fd6b14b7dbb547564a492b273edfb285acf484a21486a80",
	}
)

// Models returns the set of the four embedded networks, named "published". A
// network is only unpacked when a file's Data is called. Each call returns a new
// Set, which the caller may change.
func Models() *models.Set {
	return &models.Set{Name: "published", Models: []models.Model{
		{
			Role: models.RoleVAD, Name: "silero-v6.2.1", Contract: models.ContractSileroV5, SampleRate: 16000,
			License: "MIT; Silero Team", Files: []models.File{silero.Part(models.PartModel)},
		},
		{
			Role: models.RoleEmbedder, Name: "campplus-zh-en", Contract: models.Contract3DSpeaker, SampleRate: 16000,
			OneVoice: 0.55, TwoVoices: 0.25, KnownVoice: 0.58, License: "Apache-2.0; 3D-Speaker, Alibaba", Files: []models.File{campplus.Part(models.PartModel)},
		},
		{
			Role: models.RoleSegmenter, Name: "pyannote-segmentation-3.0", Contract: models.ContractPyannote, SampleRate: 16000,
			License: "MIT; CNRS, Hervé Bredin", Files: []models.File{segmentation.Part(models.PartModel)},
		},
		{
			Role: models.RoleTagger, Name: "yamnet", Contract: models.ContractYAMNetPatches, SampleRate: 16000,
			License: "Apache-2.0; The TensorFlow Authors", Files: []models.File{yamnet.Part(models.PartModel)},
		},
	}}
}
