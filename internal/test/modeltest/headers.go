// Package modeltest makes models for tests: files of which only the headers are
// real, folders of small Whisper models, and Whisper models of the published
// sizes with synthetic weights, which measure cost without a trained model, with
// audio that voice activity detectors recognize as speech. It also runs
// sherpa-onnx for comparison.
package modeltest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
)

// Whisper returns a small Whisper file with the given number of tokens in its
// vocabulary.
func Whisper(vocab int32) []byte {
	var b bytes.Buffer
	put := func(v ...int32) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(ggmlfile.Magic)
	put(vocab, 1500, 64, 2, 1, 320, 64, 2, 1, 80, 1)
	put(80, 5)
	b.Write(make([]byte, 80*5*4))
	put(1, 1)
	b.WriteString("a")
	put(1, 4, 0, 7)
	b.WriteString("name")
	b.Write(make([]byte, 7*4))
	return b.Bytes()
}

// f32 and similar names shorten the graphs below.
const (
	f32 = onnxfile.Float32
	i64 = onnxfile.Int64
	i32 = onnxfile.Int32
)

// SileroV5 is Silero VAD version 5.
func SileroV5() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("input", f32, "b", "n").Input("state", f32, 2, "b", 128).Input("sr", i64).
		Output("output", f32, "b", 1).Output("stateN", f32, "b", "x", "y")
}

// ZipformerCTC is icefall's Zipformer CTC with 500 tokens.
func ZipformerCTC() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("x", f32, "N", "T", 80).Input("x_lens", i64, "N").
		Output("log_probs", f32, "N", "T", 500).Output("log_probs_len", i64, "N").Meta("model_type", "zipformer2_ctc")
}

// NeMoCTC is a NeMo CTC model with 1024 pieces.
func NeMoCTC() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("audio_signal", f32, "B", 80, "T").Input("length", i64, "B").Output("logprobs", f32, "B", "T", 1025).
		Meta("model_type", "EncDecCTCModelBPE")
}

// TDTEncoder is the encoder of a Parakeet TDT model.
func TDTEncoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("audio_signal", f32, "B", 128, "T").Input("length", i64, "B").
		Output("outputs", f32, "B", 1024, "T").Output("encoded_lengths", i64, "B").Meta("model_type", "EncDecRNNTBPEModel")
}

// TDTDecoder is the prediction network of a NeMo TDT model.
func TDTDecoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("targets", i32, "B", 1).Input("target_length", i32, "B").
		Input("states.1", f32, 2, "B", 640).Input("onnx::Slice_3", f32, 2, "B", 640).
		Output("outputs", f32, "B", 640, 1).Output("prednet_lengths", i32, "B").Output("states", f32, 2, "B", 640).Output("162", f32, 2, "B", 640)
}

// TDTJoiner is the joint network of a NeMo TDT model.
func TDTJoiner() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("encoder_outputs", f32, "B", 1024, 1).Input("decoder_outputs", f32, "B", 640, 1).Output("outputs", f32, "B", 1, 1, 1030)
}

// IcefallEncoder is the encoder of an offline Zipformer transducer of icefall.
func IcefallEncoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("x", f32, "N", "T", 80).Input("x_lens", i64, "N").
		Output("encoder_out", f32, "N", "T", 512).Output("encoder_out_lens", i64, "N").Meta("model_type", "zipformer2")
}

// IcefallStream is the encoder of a streaming model, with one of its layers.
func IcefallStream() *onnxfile.Graph {
	g := onnxfile.NewGraph().Input("x", f32, "N", 45, 80).Output("encoder_out", f32, "N", 8, 512)
	for _, name := range []string{"cached_key_0", "cached_val1_0"} {
		g.Input(name, f32, 128, "N", 48).Output("new_"+name, f32, 128, "N", 48)
	}
	return g.Input("embed_states", f32, "N", 128, 3, 19).Output("new_embed_states", f32, "N", 128, 3, 19).
		Input("processed_lens", i64, "N").Output("new_processed_lens", i64, "N").
		Meta("model_type", "zipformer2").Meta("T", "45").Meta("decode_chunk_len", "32")
}

// IcefallDecoder is the decoder of offline and streaming models. It reads the
// last two tokens.
func IcefallDecoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("y", i64, "N", 2).Output("decoder_out", f32, "N", 512).
		Meta("context_size", "2").Meta("vocab_size", "500")
}

// IcefallJoiner is icefall's joiner.
func IcefallJoiner() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("encoder_out", f32, "N", 512).Input("decoder_out", f32, "N", 512).
		Output("logit", f32, "N", 500).Meta("joiner_dim", "512")
}

// GigaAMCTC is GigaAM CTC as onnx-asr has it.
func GigaAMCTC() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("features", f32, "B", 64, "T").Input("feature_lengths", i64, "B").Output("log_probs", f32, "B", "T4", 34)
}

// GigaAMEncoder is the encoder of GigaAM RNN-T.
func GigaAMEncoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("audio_signal", f32, "B", 64, "T").Input("length", i64, "B").
		Output("encoded", f32, "B", 768, "T").Output("encoded_len", i32, "B")
}

// GigaAMDecoder is the prediction network of GigaAM RNN-T.
func GigaAMDecoder() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("x", i32, 1, 1).Input("unused_x_len.1", i32, 1).Input("h.1", f32, 1, 1, 320).Input("c.1", f32, 1, 1, 320).
		Output("dec", f32, 1, 320, 1).Output("unused_x_len", i32, 1).Output("h", f32, 1, 1, 320).Output("c", f32, 1, 1, 320)
}

// GigaAMJoiner is the joint network of GigaAM RNN-T.
func GigaAMJoiner() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("enc", f32, 1, 768, 1).Input("dec", f32, 1, 320, 1).Output("joint", f32, 1, 1, 1, 34)
}

// SenseVoice is SenseVoice small.
func SenseVoice() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("x", f32, "N", "T", 560).Input("x_length", i32, "N").Input("language", i32, "N").Input("text_norm", i32, "N").
		Output("logits", f32, "N", "T", 25055).Meta("model_type", "sense_voice_ctc").
		Meta("lang_auto", "0").Meta("lang_zh", "3").Meta("lang_en", "4").Meta("lang_yue", "7").Meta("lang_ja", "11").Meta("lang_ko", "12").Meta("lang_nospeech", "13")
}

// WeSpeaker is a wespeaker embedder without metadata.
func WeSpeaker() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("feats", f32, "B", "T", 80).Output("embs", f32, "B", 192)
}

// YAMNet is YAMNet on the waveform.
func YAMNet() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("waveform", f32, "n").Output("output_0", f32, "p", 521).Output("output_1", f32, "p", 1024)
}

// PANNs is a PANNs network.
func PANNs() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("waveform", f32, "B", "n").Output("clipwise_output", f32, "B", 527)
}

// Bare is an embedder that does not state which features it needs.
func Bare() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("fbank", f32, "B", "T", 80).Output("out", f32, "B", 192)
}

// Folder writes files (name → content) into a new folder.
func Folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		Place(t, filepath.Join(dir, name), data)
	}
	return dir
}

// Place writes a file and the folders above it.
func Place(t testing.TB, file string, data []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, data, 0o644))
}
