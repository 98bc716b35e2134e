// Package models describes model files: roles, contracts, sets of models, and
// how files are recognized. Package models/library manages and downloads them.
//
// The package never loads a model; it only reads its bytes. It takes a file's
// contract, inputs and outputs from the file's header, so that an invalid or
// hostile file is refused before native code sees it.
package models

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a model's job in the pipeline.
type Role string

// The roles of the pipeline.
const (
	// RoleStandard is the recognizer of the standard tier: a ggml Whisper file.
	RoleStandard Role = "standard"
	// RoleOptimized is a recognizer of the optimized tier: CTC-type ONNX. Only
	// for this role may a set have several models, by language.
	RoleOptimized Role = "optimized"
	// RoleVAD is the voice activity detector.
	RoleVAD Role = "vad"
	// RoleEmbedder is the speaker embedder.
	RoleEmbedder Role = "embedder"
	// RoleSegmenter is the speaker segmentation network, which detects
	// overlapping voices. Without one, voices are assumed not to overlap.
	RoleSegmenter Role = "segmenter"
	// RoleTagger is the sound event tagger.
	RoleTagger Role = "tagger"
)

// Roles returns all roles in display order.
func Roles() []Role {
	return []Role{RoleStandard, RoleOptimized, RoleVAD, RoleEmbedder, RoleSegmenter, RoleTagger}
}

// Optional reports whether every stage works without a model of the role.
func (r Role) Optional() bool { return r == RoleSegmenter }

// ParseRole parses a role. The error names the word and the valid roles.
func ParseRole(s string) (Role, error) {
	r := Role(strings.ToLower(strings.TrimSpace(s)))
	if slices.Contains(Roles(), r) {
		return r, nil
	}
	names := make([]string, 0, len(Roles()))
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return "", fmt.Errorf("role %q is not known: expected one of %s", s, strings.Join(names, ", "))
}

// Contracts: a contract defines the input to feed a model and the output it
// returns. Each belongs to one role, which ContractRole returns. These are the
// values of Model.Contract and of "contract" in otograph.json.
const (
	// ContractWhisper is a Whisper model in ggml's file format.
	ContractWhisper = "whisper-ggml"

	// ContractZipformerCTC is icefall's Zipformer CTC.
	ContractZipformerCTC = "icefall-zipformer-ctc"
	// ContractIcefallTransducer is a transducer of icefall (Zipformer, Conformer),
	// offline or streaming, in three files (encoder, decoder, joiner).
	ContractIcefallTransducer = "icefall-transducer"
	// ContractWeNetCTC is WeNet CTC in the export of k2-fsa.
	ContractWeNetCTC = "wenet-ctc"
	// ContractSenseVoice is SenseVoice small.
	ContractSenseVoice = "sense-voice"
	// ContractParaformer is the offline Paraformer.
	ContractParaformer = "paraformer"
	// ContractNeMoCTC is a NeMo CTC model (Citrinet, Conformer, FastConformer,
	// Parakeet CTC, CTC branch of a hybrid).
	ContractNeMoCTC = "nemo-ctc"
	// ContractNeMoTransducer is a NeMo RNN-T or TDT model, offline or cache-aware,
	// in three files (encoder, decoder, joiner) or two (encoder, decoder_joint).
	ContractNeMoTransducer = "nemo-transducer"
	// ContractGigaAMCTC is GigaAM CTC, version 2 or 3.
	ContractGigaAMCTC = "gigaam-ctc"
	// ContractGigaAMTransducer is GigaAM RNN-T, version 2 or 3, in three files.
	ContractGigaAMTransducer = "gigaam-transducer"
	// ContractWaveformCTC is CTC on samples: wav2vec 2.0, HuBERT, MMS ….
	ContractWaveformCTC = "waveform-ctc"
	// ContractMoonshine is Moonshine: an encoder of samples, and a decoder that
	// writes text token by token (decoder_model_merged); or Moonshine v2 in its
	// streaming layout: frontend, encoder, adapter, cross_kv (the joiner), decoder_kv.
	ContractMoonshine = "moonshine"

	// ContractSileroV5 is Silero VAD version 5 or 6.
	ContractSileroV5 = "silero-v5"

	// ContractWeSpeaker is a wespeaker embedder: feats [B,T,80] → embs [B,D];
	// Kaldi filter banks with a Hamming window on 16-bit samples, mean over the
	// window subtracted.
	ContractWeSpeaker = "wespeaker"
	// Contract3DSpeaker is a 3D-Speaker embedder: feature or x [B,T,80] →
	// embedding [B,D]; Kaldi filter banks with a povey window on samples in
	// [-1,1], mean subtracted.
	Contract3DSpeaker = "3d-speaker"
	// ContractNeMoSpeaker is a NeMo speaker model (TitaNet, SpeakerNet):
	// audio_signal [B,bands,T], length [B] → logits, embs [B,D]; NeMo's
	// log-mel, normalized per band.
	ContractNeMoSpeaker = "nemo-speaker"
	// ContractSpeechBrain is speechbrain's ECAPA on speechbrain's 80 filter
	// banks: [B,T,80] → [B,1,192] or [B,192].
	ContractSpeechBrain = "speechbrain-ecapa"
	// ContractSpeechBrainWave is speechbrain's ECAPA with the features inside
	// the graph: wav [B,S], lens [B] → [B,1,192] or [B,192].
	ContractSpeechBrainWave = "speechbrain-ecapa-wave"

	// ContractPyannote is a speaker segmentation network like
	// pyannote/segmentation-3.0, in the export of k2-fsa or without metadata
	// (10 s of waveform → frames × powerset classes or speakers).
	ContractPyannote = "pyannote-segmentation"

	// ContractPANNs is a PANNs network: a waveform [B,samples] in [-1,1] →
	// clipwise [B,527], maybe framewise [B,F,527] (CNN14 …; 32 or 16 kHz).
	ContractPANNs = "panns"
	// ContractYAMNet is YAMNet: a waveform [samples] at 16 kHz → [patches,521].
	ContractYAMNet = "yamnet"
	// ContractYAMNetPatches is YAMNet on log-mel patches: [n,96,64] → [n,521].
	ContractYAMNetPatches = "yamnet-patches"
	// ContractCED is CED on CED's log-mel bands: feats [B,64,T] → prob [B,527].
	ContractCED = "ced"
	// ContractZipformerTagger is icefall's Zipformer audio tagger: x [B,T,80],
	// x_lens [B] → logits [B,527], which are probabilities.
	ContractZipformerTagger = "zipformer-tagger"
)

// contracts holds the accepted contracts of each role.
var contracts = map[Role][]string{
	RoleStandard: {ContractWhisper},
	RoleOptimized: {
		ContractZipformerCTC, ContractIcefallTransducer, ContractWeNetCTC, ContractSenseVoice, ContractParaformer, ContractNeMoCTC,
		ContractNeMoTransducer, ContractGigaAMCTC, ContractGigaAMTransducer, ContractWaveformCTC, ContractMoonshine,
	},
	RoleVAD:       {ContractSileroV5},
	RoleEmbedder:  {ContractWeSpeaker, Contract3DSpeaker, ContractNeMoSpeaker, ContractSpeechBrain, ContractSpeechBrainWave},
	RoleSegmenter: {ContractPyannote},
	RoleTagger:    {ContractPANNs, ContractYAMNet, ContractYAMNetPatches, ContractCED, ContractZipformerTagger},
}

// ContractRole returns a contract's role, and false for an unknown one.
func ContractRole(contract string) (Role, bool) {
	for role, list := range contracts {
		if slices.Contains(list, contract) {
			return role, true
		}
	}
	return "", false
}

// ContractsOf returns the contracts of a role, sorted.
func ContractsOf(role Role) []string { return slices.Sorted(slices.Values(contracts[role])) }
