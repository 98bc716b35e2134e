//go:build cgo

package models_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/asr/onnx"
	"github.com/otograph/otograph/diarize/embed"
	tagger "github.com/otograph/otograph/events/tag"
	"github.com/otograph/otograph/internal/ort"
	"github.com/otograph/otograph/models"
)

// The engines name their contracts themselves, as this package may not know them:
// only here the two lists meet. Silero's and Whisper's engines take no contract.
func TestEnginesKnowTheContractsByTheSameNames(t *testing.T) {
	assert.Equal(t, map[string]string{
		"Zipformer": models.ContractZipformerCTC, "WeNet": models.ContractWeNetCTC, "SenseVoice": models.ContractSenseVoice,
		"Paraformer": models.ContractParaformer, "NeMo CTC": models.ContractNeMoCTC, "transducer": models.ContractNeMoTransducer,
	}, map[string]string{
		"Zipformer": onnx.ContractZipformer, "WeNet": onnx.ContractWeNet, "SenseVoice": onnx.ContractSenseVoice,
		"Paraformer": onnx.ContractParaformer, "NeMo CTC": onnx.ContractNeMoCTC, "transducer": onnx.ContractTransducer,
	})
	assert.Len(t, models.ContractsOf(models.RoleOptimized), 6, "a recogniser's contract that is not compared above")

	assert.ElementsMatch(t, models.ContractsOf(models.RoleEmbedder), embed.Contracts())
	assert.Equal(t, map[string]string{
		"wespeaker": models.ContractWeSpeaker, "3D-Speaker": models.Contract3DSpeaker, "NeMo": models.ContractNeMoSpeaker,
		"SpeechBrain": models.ContractSpeechBrain, "waveform": models.ContractSpeechBrainWave,
	}, map[string]string{
		"wespeaker": embed.WeSpeaker, "3D-Speaker": embed.ThreeDSpeaker, "NeMo": embed.NeMo,
		"SpeechBrain": embed.SpeechBrain, "waveform": embed.SpeechBrainWave,
	})

	assert.ElementsMatch(t, models.ContractsOf(models.RoleTagger), tagger.Contracts())
	assert.Equal(t, map[string]string{
		"PANNs": models.ContractPANNs, "YAMNet": models.ContractYAMNet, "patches": models.ContractYAMNetPatches,
		"CED": models.ContractCED, "Zipformer": models.ContractZipformerTagger,
	}, map[string]string{
		"PANNs": tagger.PANNs, "YAMNet": tagger.YAMNet, "patches": tagger.YAMNetPatches,
		"CED": tagger.CED, "Zipformer": tagger.Zipformer,
	})
}

// The engine looks again when it opens a recogniser: both have to see the same in it.
func TestEnginesRecogniseTheSameRecognisers(t *testing.T) {
	for name, c := range models.EveryFamily() {
		if c.Role != models.RoleOptimized || c.Part != models.PartModel && c.Part != models.PartEncoder {
			continue
		}
		t.Run(name, func(t *testing.T) {
			src := ort.Source{Data: c.Bytes, Name: name}
			g, err := ort.Inspect(src)
			require.NoError(t, err)
			contract, err := onnx.Recognise(g, src)
			require.NoError(t, err)
			assert.Equal(t, c.Contract, contract)
		})
	}
}
