package models

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Port is a graph's input or output: name, type, shape (free is -1).
type Port = onnxfile.Value

// Graph describes an ONNX file: its inputs, outputs and metadata.
type Graph struct {
	Inputs, Outputs []Port
	Metadata        map[string]string
}

// Recognize identifies a graph by its inputs, outputs and metadata alone. It is
// the only place that distinguishes model families: importing and opening use
// it, and so do the engines if a model states no contract. Its errors wrap
// ErrUnsupported, and ErrUnknown for a graph of no known family.
func (g Graph) Recognize() (*Recognized, error) {
	for _, r := range families {
		if len(g.Inputs) == 0 || !r.when(g) {
			continue
		}
		if r.refuse != "" {
			return nil, fmt.Errorf("%w: this is %s; it has %s", ErrUnsupported, r.refuse, g.signature())
		}
		found := &Recognized{
			Role: r.role, Contract: r.contract, Part: r.part, Candidates: r.candidates, Helper: r.helper,
			Languages: languagesIn(g.Metadata), Signature: g.signature(),
		}
		if rate, err := strconv.Atoi(g.Metadata["sample_rate"]); err == nil && ValidRate(rate) {
			found.SampleRate = rate
		}
		return found, nil
	}
	named := ""
	if g.kind() != "" {
		named = fmt.Sprintf(", model_type %.60q", g.kind())
	}
	return nil, fmt.Errorf("%w%s; it has %s", ErrUnknown, named, g.signature())
}

// family is a kind of graph: conditions, and a contract or a refusal.
type family struct {
	when     condition
	role     Role
	contract string
	part     Part
	// candidates are the possible contracts if the graph does not identify one.
	candidates []string
	helper     bool
	refuse     string
}

// condition is a test of a graph.
type condition func(g Graph) bool

// model is a family whose model is one graph.
func model(contract string, conditions ...condition) family {
	return part(contract, PartModel, conditions...)
}

// part is one graph of a family with several graphs.
func part(contract string, p Part, conditions ...condition) family {
	role, _ := ContractRole(contract)
	return family{when: is(conditions...), role: role, contract: contract, part: p}
}

// refused is a known kind of model that no role uses.
func refused(what string, conditions ...condition) family {
	return family{when: is(conditions...), refuse: what}
}

const whisperONNX = "a Whisper model as ONNX: the standard tier takes Whisper as a ggml file; " +
	"run `otograph models import FOLDER` on the safetensors of the same model (openai/whisper-base and its kin)"

const otherSilero = "Silero VAD v3 or v4: expected silero_vad.onnx of version 5 or 6 (`otograph models pull silero-v6.2.1`)"

// families are tested in this order; the first match wins. A family is
// identified by the name in the metadata if there is one. Inputs and outputs
// decide only if the metadata names no other family (anonymous).
var families = []family{
	// Voice activity.
	model(ContractSileroV5, in("input", "state"), out("output", "stateN"), width("state", 128)),
	refused(otherSilero, either(in("input", "h0", "c0"), is(in("x", "h", "c"), out("prob")), is(in("input", "h", "c"), out("output", "hn", "cn"), width("h", 64)))),
	refused("the sequence graph of Silero VAD 6: expected silero_vad.onnx of version 5 or 6 (`otograph models pull silero-v6.2.1`)",
		in("input", "h", "c"), out("speech_probs", "hn", "cn")),
	refused("ten-vad: Silero VAD is supported", either(named("ten-vad"),
		is(in("input_1", "input_2", "input_3", "input_6", "input_7"), input("input_1", func(v Port) bool { return v.Rank() > 2 && v.Shape[2] == 41 })))),

	// Streaming exports, whose inputs include the previous piece's state.
	refused("a streaming NeMo model other than a transducer: expected the offline export",
		in("audio_signal", "length"), inPrefix("cache_"), not(out("outputs", "encoded_lengths"))),
	refused("a part of a streaming Paraformer: expected the offline export (speech, speech_lengths to logits, token_num)",
		either(is(named("paraformer"), not(is(in("speech", "speech_lengths"), out("logits", "token_num")))), in("enc", "acoustic_embeds"))),
	refused("a streaming Zipformer or WeNet model: expected the offline export with inputs x and x_lens alone",
		named("zipformer2_ctc", "wenet_ctc"), not(is(in("x", "x_lens"), out("log_probs"), inputs(2)))),
	refused("WeNet's own streaming export (encoder.onnx, ctc.onnx, decoder.onnx): the CTC export of k2-fsa is supported",
		either(in("chunk", "offset"), in("chunk", "att_cache"))),
	refused("the CTC layer of WeNet's own export: the CTC export of k2-fsa is supported",
		in("hidden"), out("probs")),

	// Recognizers that name themselves.
	model(ContractGigaAMCTC, either(is(metadata("is_giga_am"), either(out("logprobs"), out("log_probs"))),
		is(in("features", "feature_lengths"), inputs(2), out("log_probs")))),
	part(ContractGigaAMTransducer, PartEncoder, either(in("audio_signal", "length"), in("features", "feature_lengths")), out("encoded", "encoded_len")),
	part(ContractGigaAMTransducer, PartDecoder, in("x", "h.1", "c.1"), out("dec", "h", "c")),
	part(ContractGigaAMTransducer, PartJoiner, in("enc", "dec"), inputs(2), out("joint")),
	refused("GigaAM in another layout than that of sherpa-onnx or onnx-asr", metadata("is_giga_am")),
	model(ContractZipformerCTC, named("zipformer2_ctc")),
	model(ContractWeNetCTC, named("wenet_ctc")),
	model(ContractSenseVoice, namedPrefix("sense_voice")),
	model(ContractParaformer, named("paraformer")),
	refused("FireRedASR", namedPrefix("fire-red-asr")),
	refused("Dolphin", namedPrefix("dolphin")),
	refused("TeleSpeech", namedPrefix("telespeech")),
	refused("a NeMo Canary model", namedPrefix("EncDecMultiTask")),
	refused(whisperONNX, namedPrefix("whisper")),
	refused(whisperONNX, either(in("mel"), in("input_features"))),
	part(ContractMoonshine, PartEncoder, in("input_values"), out("last_hidden_state"), outRank("last_hidden_state", 3)),
	refused(whisperONNX, in("input_ids", "encoder_hidden_states"), either(last(51864), last(51865), last(51866))),
	part(ContractMoonshine, PartDecoder, in("input_ids", "encoder_hidden_states", "use_cache_branch"), inPrefix("past_key_values."), out("logits")),
	part(ContractMoonshine, PartFrontend, in("audio_chunk", "sample_buffer", "conv1_buffer", "conv2_buffer"), out("features")),
	part(ContractMoonshine, PartEncoder, in("features"), inputs(1), out("encoded")),
	part(ContractMoonshine, PartAdapter, in("encoded", "pos_offset"), inputs(2), out("memory")),
	part(ContractMoonshine, PartJoiner, in("memory"), inputs(1), out("k_cross", "v_cross")),
	part(ContractMoonshine, PartDecoder, in("token", "k_self", "v_self", "out_k_cross", "out_v_cross"), out("logits", "out_k_self", "out_v_self")),
	refused("the decoder of a model that writes text token by token: of Whisper, run `otograph models import FOLDER` on the safetensors; "+
		"of Moonshine, decoder_model_merged is needed", in("input_ids", "encoder_hidden_states")),
	refused("a graph with inputs args_0 and args_1, as Moonshine's first export has them: expected encoder_model and decoder_model_merged",
		in("args_0", "args_1")),
	refused("a recognizer that requires features normalized by mean and deviation, as Dolphin and FireRedASR",
		in("x", "x_lens"), out("log_probs"), either(metadata("mean"), metadata("cmvn_mean"))),

	// Recognizers without metadata.
	model(ContractSenseVoice, anonymous, inputs(4), in("language"), either(in("text_norm"), in("textnorm"))),
	model(ContractParaformer, anonymous, in("speech", "speech_lengths"), out("logits", "token_num")),
	model(ContractZipformerCTC, anonymous, in("x", "x_lens"), inputs(2), out("log_probs", "log_probs_len")),
	model(ContractWeNetCTC, anonymous, in("x", "x_lens"), inputs(2), out("log_probs", "log_probs_lens")),
	part(ContractIcefallTransducer, PartEncoder, in("x", "x_lens"), inputs(2), out("encoder_out", "encoder_out_lens")),
	part(ContractIcefallTransducer, PartJoiner, in("encoder_out", "decoder_out"), out("logit")),
	part(ContractIcefallTransducer, PartDecoder, in("y"), inputs(1), out("decoder_out")),
	part(ContractIcefallTransducer, PartEncoder, in("x"), carries, out("encoder_out")),
	refused("the encoder of an icefall transducer in an unknown layout: expected inputs x and x_lens, or x and states, each with an output new_…",
		out("encoder_out")),

	// NeMo.
	model(ContractNeMoSpeaker, either(is(in("audio_signal", "length"), out("embs")), framework("nemo"))),
	model(ContractNeMoCTC, in("audio_signal", "length"), out("logprobs")),
	part(ContractNeMoTransducer, PartEncoder, in("audio_signal", "length"), out("outputs", "encoded_lengths")),
	refused("a NeMo model that is neither CTC (output logprobs) nor a transducer (outputs, encoded_lengths)",
		namedPrefix("EncDec")),
	part(ContractNeMoTransducer, PartDecoderJoint,
		in("encoder_outputs", "targets", "target_length"), out("outputs")),
	part(ContractNeMoTransducer, PartJoiner, in("encoder_outputs", "decoder_outputs"), out("outputs")),
	part(ContractNeMoTransducer, PartDecoder, in("targets", "target_length"), out("outputs")),
	// The feature graph of onnx-asr; Otograph computes the features itself.
	{
		when: is(in("waveforms", "waveforms_lens"), out("features")),
		role: RoleOptimized, contract: ContractNeMoTransducer, helper: true,
	},

	// Sound taggers, tested before embedders: CED's input is called feats.
	model(ContractCED, either(named("CED"), is(in("feats"), out("prob")))),
	model(ContractCED, shape(-1, 64, -1), last(527)),
	model(ContractZipformerTagger, in("x", "x_lens"), last(527), not(out("log_probs"))),
	model(ContractYAMNet, shape(-1), last(521)),
	model(ContractYAMNetPatches, shape(-1, 96, 64), last(521)),
	model(ContractPANNs, shape(-1, -1), last(527)),
	model(ContractYAMNet, shape(-1, -1), last(521)),

	// Recognizers on samples, after taggers on samples of known output width.
	model(ContractWaveformCTC, anonymous, in("input_values", "input_lengths"), inputs(2), out("logprobs"), outRank("logprobs", 3)),
	model(ContractWaveformCTC, either(anonymous, named("omnilingual-asr")), outRank("logits", 3),
		either(shape(-1, -1), is(in("input_values", "attention_mask"), inputs(2), rank("input_values", 2)))),

	// Speakers.
	model(ContractWeSpeaker, either(framework("wespeaker"), is(in("feats"), out("embs")), is(in("fbank", "weights"), out("embedding")))),
	model(Contract3DSpeaker,
		either(framework("3d-speaker"), is(either(in("feature"), in("x")), out("embedding"), shape(-1, -1, 80)))),
	model(ContractSpeechBrain, framework("speechbrain"), shape(-1, -1, 80)),
	model(ContractPyannote, either(namedPrefix("pyannote-segmentation"), is(shape(-1, 1, -1), last(7)))),
	model(ContractSpeechBrainWave, in("wav"), rank("wav", 2), last(192)),
	{
		when: is(shape(-1, -1, 80), last(192)),
		role: RoleEmbedder, part: PartModel,
		candidates: []string{ContractWeSpeaker, Contract3DSpeaker, ContractSpeechBrain},
	},

	refused("a model with the inputs of a streaming one: expected an offline one",
		func(g Graph) bool { return len(g.Inputs) > 6 }),
}

func (g Graph) kind() string      { return g.Metadata["model_type"] }
func (g Graph) signature() string { return onnxfile.Signature(g.Inputs, g.Outputs) }

// anonymous reports whether the metadata names no model.
func anonymous(g Graph) bool { return g.kind() == "" }

// carries requires states: each input but x has an output of its name after new_.
func carries(g Graph) bool {
	return len(g.Inputs) > 1 && !slices.ContainsFunc(g.Inputs, func(p Port) bool { return p.Name != "x" && !out("new_"+p.Name)(g) })
}

// is requires all of the conditions, either at least one.
func is(conditions ...condition) condition {
	return func(g Graph) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c(g) })
	}
}

func either(conditions ...condition) condition {
	return func(g Graph) bool {
		return slices.ContainsFunc(conditions, func(c condition) bool { return c(g) })
	}
}

func not(condition condition) condition { return func(g Graph) bool { return !condition(g) } }

// named requires that the metadata names one of the models.
func named(names ...string) condition {
	return func(g Graph) bool { return slices.Contains(names, g.kind()) }
}

func namedPrefix(prefix string) condition {
	return func(g Graph) bool { return strings.HasPrefix(g.kind(), prefix) }
}

// framework requires that the metadata names the speaker model's toolkit.
func framework(name string) condition {
	return func(g Graph) bool { return strings.EqualFold(g.Metadata["framework"], name) }
}

// metadata requires that a flag of the metadata is set.
func metadata(flag string) condition {
	return func(g Graph) bool { v := g.Metadata[flag]; return v != "" && v != "0" }
}

// in and out require that each name is among the inputs or outputs.
func in(names ...string) condition { return func(g Graph) bool { return hasAll(g.Inputs, names) } }

func out(names ...string) condition { return func(g Graph) bool { return hasAll(g.Outputs, names) } }

func inPrefix(prefix string) condition {
	return func(g Graph) bool {
		return slices.ContainsFunc(g.Inputs, func(p Port) bool { return strings.HasPrefix(p.Name, prefix) })
	}
}

func inputs(n int) condition { return func(g Graph) bool { return len(g.Inputs) == n } }

func hasAll(ports []Port, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, ok := onnxfile.Find(ports, name)
		return !ok
	})
}

// input requires that an input exists and passes a test.
func input(name string, test func(Port) bool) condition {
	return func(g Graph) bool {
		v, ok := onnxfile.Find(g.Inputs, name)
		return ok && test(v)
	}
}

// width requires that the last dimension of an input is n or free.
func width(name string, n int64) condition {
	return input(name, func(v Port) bool { return v.Last() == n || v.Last() == -1 })
}

func rank(name string, n int) condition {
	return input(name, func(v Port) bool { return v.Rank() == n })
}

func outRank(output string, n int) condition {
	return func(g Graph) bool {
		v, ok := onnxfile.Find(g.Outputs, output)
		return ok && v.Rank() == n
	}
}

// shape requires a single input of floats in this shape; -1 is any size.
func shape(dims ...int64) condition {
	return func(g Graph) bool {
		fits := func(have, want int64) bool { return want == -1 || have == want }
		return len(g.Inputs) == 1 && g.Inputs[0].Type == onnxfile.Float32 && slices.EqualFunc(g.Inputs[0].Shape, dims, fits)
	}
}

// last requires that the last dimension of an output is n.
func last(n int64) condition {
	return func(g Graph) bool {
		return slices.ContainsFunc(g.Outputs, func(v Port) bool { return v.Last() == n })
	}
}
