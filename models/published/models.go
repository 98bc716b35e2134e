// Package published embeds small published networks for every role but
// transcription, so that a program detects voices and sounds without a
// download: Silero for voice activity, CAM++ for voices, pyannote's
// segmentation for simultaneous voices and YAMNet for sounds. NOTICE has their
// authors and licenses, tools/convert the programs that made the files.
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
	//go:embed models.json
	description []byte
	//go:embed silero-v6.2.1.onnx.zst
	silero []byte
	//go:embed campplus-zh-en.onnx.zst
	campplus []byte
	//go:embed pyannote-segmentation-3.0.onnx.zst
	segmentation []byte
	//go:embed yamnet.onnx.zst
	yamnet []byte
)

// Models returns the set of the four embedded networks, named "published". A
// network is only unpacked when a file's Data is called. Each call returns a new
// Set, which the caller may change.
//
// Silero's file is the publisher's; the weights of CAM++ and the segmentation
// are rounded to 8 bits (tools/convert/round_weights.py).
func Models() *models.Set {
	return packed.Set(description, map[string][]byte{
		"silero-v6.2.1.onnx": silero, "campplus-zh-en.onnx": campplus, "pyannote-segmentation-3.0.onnx": segmentation, "yamnet.onnx": yamnet,
	})
}
