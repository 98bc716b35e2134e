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
	. "github.com/otograph/otograph/models"
)

// The engines name their contracts themselves, as this package may not know them:
// only here the two lists meet. Silero's and Whisper's engines take no contract.
func TestEnginesKnowTheContractsByTheSameNames(t *testing.T) {
	assert.Equal(t, map[string]string{
		"Zipformer": ContractZipformerCTC, "WeNet": ContractWeNetCTC, "SenseVoice": ContractSenseVoice,
		"Paraformer": ContractParaformer, "NeMo CTC": ContractNeMoCTC, "transducer": ContractNeMoTransducer,
	}, map[string]string{
		"Zipformer": onnx.ContractZipformer, "WeNet": onnx.ContractWeNet, "SenseVoice": onnx.ContractSenseVoice,
		"Paraformer": onnx.ContractParaformer, "NeMo CTC": onnx.ContractNeMoCTC, "transducer": onnx.ContractTransducer,
	})
	assert.Len(t, ContractsOf(RoleOptimized), 6, "a recogniser's contract that is not compared above")

	assert.ElementsMatch(t, ContractsOf(RoleEmbedder), embed.Contracts())
	assert.Equal(t, map[string]string{
		"wespeaker": ContractWeSpeaker, "3D-Speaker": Contract3DSpeaker, "NeMo": ContractNeMoSpeaker,
		"SpeechBrain": ContractSpeechBrain, "waveform": ContractSpeechBrainWave,
	}, map[string]string{
		"wespeaker": embed.WeSpeaker, "3D-Speaker": embed.ThreeDSpeaker, "NeMo": embed.NeMo,
		"SpeechBrain": embed.SpeechBrain, "waveform": embed.SpeechBrainWave,
	})

	assert.ElementsMatch(t, ContractsOf(RoleTagger), tagger.Contracts())
	assert.Equal(t, map[string]string{
		"PANNs": ContractPANNs, "YAMNet": ContractYAMNet, "patches": ContractYAMNetPatches,
		"CED": ContractCED, "Zipformer": ContractZipformerTagger,
	}, map[string]string{
		"PANNs": tagger.PANNs, "YAMNet": tagger.YAMNet, "patches": tagger.YAMNetPatches,
		"CED": tagger.CED, "Zipformer": tagger.Zipformer,
	})
}

// The engine looks again when it opens a recogniser: both have to see the same in it.
func TestEnginesRecogniseTheSameRecognisers(t *testing.T) {
	for name, c := range EveryFamily() {
		if c.Role != RoleOptimized || c.Part != PartModel && c.Part != PartEncoder {
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
