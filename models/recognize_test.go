package models

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otograph/otograph/internal/files/ggmlfile"
	"github.com/otograph/otograph/internal/files/onnxfile"
	"github.com/otograph/otograph/internal/test/modeltest"
)

// f32 and similar names shorten the graphs below.
const (
	f32 = onnxfile.Float32
	i64 = onnxfile.Int64
	i32 = onnxfile.Int32
)

// madeUp is a file with the inputs, outputs and metadata of a published one.
type madeUp struct {
	graph    *onnxfile.Graph
	role     Role
	contract string
	part     Part
}

func everyFamily() map[string]madeUp {
	g := onnxfile.NewGraph
	return map[string]madeUp{
		"silero v5":              {modeltest.SileroV5(), RoleVAD, ContractSileroV5, PartModel},
		"silero v6 without sr":   {g().Input("input", f32, 1, 576).Input("state", f32, 2, 1, 128).Output("output", f32, 1, 1).Output("stateN", f32, 2, 1, 128), RoleVAD, ContractSileroV5, PartModel},
		"zipformer ctc":          {modeltest.ZipformerCTC(), RoleOptimized, ContractZipformerCTC, PartModel},
		"wenet ctc":              {g().Input("x", f32, 1, "T", 80).Input("x_lens", i64, 1).Output("log_probs", f32, 1, "T", 9).Output("log_probs_lens", i64, 1).Meta("model_type", "wenet_ctc"), RoleOptimized, ContractWeNetCTC, PartModel},
		"sense voice":            {modeltest.SenseVoice(), RoleOptimized, ContractSenseVoice, PartModel},
		"sense voice by funasr":  {g().Input("speech", f32, 1, "T", 560).Input("speech_lengths", i32, 1).Input("language", i32, 1).Input("textnorm", i32, 1).Output("ctc_logits", f32, 1, "T", 9).Output("encoder_out_lens", i32, 1), RoleOptimized, ContractSenseVoice, PartModel},
		"paraformer":             {g().Input("speech", f32, 1, "T", 560).Input("speech_lengths", i32, 1).Output("logits", f32, 1, "U", 9).Output("token_num", i32, 1), RoleOptimized, ContractParaformer, PartModel},
		"nemo ctc":               {modeltest.NeMoCTC(), RoleOptimized, ContractNeMoCTC, PartModel},
		"nemo stream":            {modeltest.TDTEncoder().Input("cache_last_channel", f32, 1, 17, 70, 512).Input("cache_last_channel_len", i64, 1), RoleOptimized, ContractNeMoTransducer, PartEncoder},
		"tdt encoder":            {modeltest.TDTEncoder(), RoleOptimized, ContractNeMoTransducer, PartEncoder},
		"tdt decoder":            {modeltest.TDTDecoder(), RoleOptimized, ContractNeMoTransducer, PartDecoder},
		"tdt joiner":             {modeltest.TDTJoiner(), RoleOptimized, ContractNeMoTransducer, PartJoiner},
		"tdt decoder and joint":  {g().Input("encoder_outputs", f32, 1, 1024, 1).Input("targets", i32, 1, 1).Input("target_length", i32, 1).Input("input_states_1", f32, 2, 1, 640).Input("input_states_2", f32, 2, 1, 640).Output("outputs", f32, 1, 1, 1, 9), RoleOptimized, ContractNeMoTransducer, PartDecoderJoint},
		"icefall encoder":        {modeltest.IcefallEncoder(), RoleOptimized, ContractIcefallTransducer, PartEncoder},
		"icefall stream":         {modeltest.IcefallStream(), RoleOptimized, ContractIcefallTransducer, PartEncoder},
		"icefall decoder":        {modeltest.IcefallDecoder(), RoleOptimized, ContractIcefallTransducer, PartDecoder},
		"icefall joiner":         {modeltest.IcefallJoiner(), RoleOptimized, ContractIcefallTransducer, PartJoiner},
		"gigaam v1":              {modeltest.NeMoCTC().Meta("is_giga_am", "1"), RoleOptimized, ContractGigaAMCTC, PartModel},
		"gigaam ctc":             {modeltest.GigaAMCTC(), RoleOptimized, ContractGigaAMCTC, PartModel},
		"gigaam encoder":         {modeltest.GigaAMEncoder(), RoleOptimized, ContractGigaAMTransducer, PartEncoder},
		"gigaam decoder":         {modeltest.GigaAMDecoder(), RoleOptimized, ContractGigaAMTransducer, PartDecoder},
		"gigaam joiner":          {modeltest.GigaAMJoiner(), RoleOptimized, ContractGigaAMTransducer, PartJoiner},
		"wav2vec2 of onnx-asr":   {g().Input("input_values", f32, "N", "T").Input("input_lengths", i64, "N").Output("logprobs", f32, "N", "F", 32), RoleOptimized, ContractWaveformCTC, PartModel},
		"titanet":                {g().Input("audio_signal", f32, "B", 80, "T").Input("length", i64, "B").Output("logits", f32, "B", 16681).Output("embs", f32, "B", 192), RoleEmbedder, ContractNeMoSpeaker, PartModel},
		"wespeaker":              {modeltest.WeSpeaker(), RoleEmbedder, ContractWeSpeaker, PartModel},
		"3d-speaker":             {g().Input("x", f32, "B", "T", 80).Output("embedding", f32, "B", 192).Meta("framework", "3d-speaker"), RoleEmbedder, Contract3DSpeaker, PartModel},
		"3d-speaker itself":      {g().Input("feature", f32, "B", "T", 80).Output("embedding", f32, "B", 192), RoleEmbedder, Contract3DSpeaker, PartModel},
		"speechbrain wave":       {g().Input("wav", f32, "B", "S").Input("lens", f32, "B").Output("emb", f32, "B", 1, 192), RoleEmbedder, ContractSpeechBrainWave, PartModel},
		"speechbrain":            {modeltest.Bare().Meta("framework", "speechbrain"), RoleEmbedder, ContractSpeechBrain, PartModel},
		"zipformer, no metadata": {g().Input("x", f32, "N", "T", 80).Input("x_lens", i64, "N").Output("log_probs", f32, "N", "T", 9).Output("log_probs_len", i64, "N"), RoleOptimized, ContractZipformerCTC, PartModel},
		"wenet, no metadata":     {g().Input("x", f32, 1, "T", 80).Input("x_lens", i64, 1).Output("log_probs", f32, 1, "T", 9).Output("log_probs_lens", i64, 1), RoleOptimized, ContractWeNetCTC, PartModel},
		"wav2vec2":               {g().Input("input_values", f32, "N", "T").Input("attention_mask", i64, "N", "T").Output("logits", f32, "N", "F", 32), RoleOptimized, ContractWaveformCTC, PartModel},
		"moonshine encoder":      {g().Input("input_values", f32, "N", "T").Input("attention_mask", i64, "N", "T").Output("last_hidden_state", f32, "N", "F", 288), RoleOptimized, ContractMoonshine, PartEncoder},
		"moonshine frontend":     {g().Input("audio_chunk", f32, 1, "T").Input("sample_buffer", f32, 1, 79).Input("sample_len", i64, 1).Input("conv1_buffer", f32, 1, 320, 4).Input("conv2_buffer", f32, 1, 640, 4).Input("frame_count", i64, 1).Output("features", f32, 1, "F", 320), RoleOptimized, ContractMoonshine, PartFrontend},
		"moonshine v2 encoder":   {g().Input("features", f32, 1, "F", 320).Output("encoded", f32, 1, "F", 320), RoleOptimized, ContractMoonshine, PartEncoder},
		"moonshine adapter":      {g().Input("encoded", f32, 1, "F", 320).Input("pos_offset", i64, 1).Output("memory", f32, 1, "F", 320), RoleOptimized, ContractMoonshine, PartAdapter},
		"moonshine cross_kv":     {g().Input("memory", f32, 1, "F", 320).Output("k_cross", f32, 6, 1, 8, "F", 40).Output("v_cross", f32, 6, 1, 8, "F", 40), RoleOptimized, ContractMoonshine, PartJoiner},
		"moonshine decoder":      {moonshineDecoder(32768), RoleOptimized, ContractMoonshine, PartDecoder},
		"omnilingual":            {g().Input("x", f32, "N", "T").Output("logits", f32, "N", "F", 9812).Meta("model_type", "omnilingual-asr"), RoleOptimized, ContractWaveformCTC, PartModel},
		"segmentation":           {g().Input("x", f32, "N", 1, "T").Output("y", f32, "N", "F", "C").Meta("model_type", "pyannote-segmentation-3.0"), RoleSegmenter, ContractPyannote, PartModel},
		"bare segmentation":      {g().Input("input_values", f32, "N", 1, "T").Output("logits", f32, "N", "F", 7), RoleSegmenter, ContractPyannote, PartModel},
		"bare embedder":          {modeltest.Bare(), RoleEmbedder, "", PartModel},
		"panns":                  {modeltest.PANNs(), RoleTagger, ContractPANNs, PartModel},
		"yamnet":                 {modeltest.YAMNet(), RoleTagger, ContractYAMNet, PartModel},
		"yamnet in a batch":      {g().Input("waveform", f32, "B", "n").Output("scores", f32, "p", 521), RoleTagger, ContractYAMNet, PartModel},
		"yamnet patches":         {g().Input("patches", f32, "n", 96, 64).Output("scores", f32, "n", 521), RoleTagger, ContractYAMNetPatches, PartModel},
		"ced":                    {g().Input("feats", f32, "B", 64, "T").Output("prob", f32, "B", 527).Meta("model_type", "CED"), RoleTagger, ContractCED, PartModel},
		"zipformer tagger":       {g().Input("x", f32, "N", "T", 80).Input("x_lens", i64, "N").Output("logits", f32, "N", 527).Meta("model_type", "zipformer2"), RoleTagger, ContractZipformerTagger, PartModel},
	}
}

// moonshineDecoder has the ports of decoder_model_merged, which Whisper's has
// as well.
func moonshineDecoder(tokens int) *onnxfile.Graph {
	return onnxfile.NewGraph().Input("input_ids", i64, "N", "L").Input("encoder_hidden_states", f32, "N", "F", 288).Input("use_cache_branch", onnxfile.Bool, 1).
		Input("past_key_values.0.decoder.key", f32, "N", 8, "P", 36).Output("logits", f32, "N", "L", tokens)
}

// fireRed has the inputs and outputs of WeNet's export, but needs other
// features.
func fireRed() *onnxfile.Graph {
	return onnxfile.NewGraph().Input("x", f32, 1, "T", 80).Input("x_lens", i64, 1).Output("log_probs", f32, 1, "T", 9).Output("log_probs_lens", i64, 1)
}

func TestEveryFamilyIsRecognized(t *testing.T) {
	cases := everyFamily()
	dir := t.TempDir()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".onnx")
			modeltest.Place(t, file, c.graph.Bytes())
			found, err := Recognize(file)
			require.NoError(t, err)
			assert.Equal(t, c.role, found.Role)
			assert.Equal(t, c.contract, found.Contract)
			assert.Equal(t, c.part, found.Part)
		})
	}
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.contract] = true
	}
	for _, contract := range slices.Concat(slices.Collect(maps.Values(contracts))...) {
		if contract != ContractWhisper {
			assert.True(t, seen[contract], "no test for %s", contract)
		}
	}
}

func TestLanguagesComeFromTheFile(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{
		"sv.onnx":      modeltest.SenseVoice().Bytes(),
		"demo.onnx":    modeltest.ZipformerCTC().Meta("languages", "en, es,xx1,EN").Bytes(),
		"whisper.bin":  modeltest.Whisper(51866),
		"older.bin":    modeltest.Whisper(51865),
		"english.bin":  modeltest.Whisper(51864),
		"unknown.onnx": modeltest.NeMoCTC().Bytes(),
	})
	for name, want := range map[string][]string{
		"sv.onnx": {"en", "ja", "ko", "yue", "zh"}, "demo.onnx": {"en", "es"}, "whisper.bin": nil, "english.bin": {"en"}, "unknown.onnx": nil,
	} {
		found, err := Recognize(filepath.Join(dir, name))
		require.NoError(t, err, name)
		assert.Equal(t, want, found.Languages, name)
	}
	older, err := Recognize(filepath.Join(dir, "older.bin"))
	require.NoError(t, err)
	assert.Len(t, older.Languages, 99)
	assert.NotContains(t, older.Languages, "yue", "a language of large-v3")
}

func TestSampleRateComesFromTheFile(t *testing.T) {
	dir := modeltest.Folder(t, map[string][]byte{
		"a.onnx": modeltest.PANNs().Meta("sample_rate", "32000").Bytes(), "b.onnx": modeltest.PANNs().Bytes(), "c.onnx": modeltest.PANNs().Meta("sample_rate", "7e9").Bytes(),
	})
	for name, want := range map[string]int{"a.onnx": 32000, "b.onnx": 0, "c.onnx": 0} {
		found, err := Recognize(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, found.SampleRate, name)
	}
}

func TestOtherFilesAreIdentified(t *testing.T) {
	g := onnxfile.NewGraph
	cases := map[string]struct {
		data []byte
		is   error
		says string
	}{
		"empty":           {nil, ErrUnsupported, "empty file"},
		"gguf":            {[]byte("GGUF\x03\x00\x00\x00rest"), ErrUnsupported, "GGUF"},
		"checkpoint":      {[]byte("PK\x03\x04rest of a zip"), ErrUnsupported, "tools/convert"},
		"tflite":          {[]byte("\x1c\x00\x00\x00TFL3rest"), ErrUnsupported, "TensorFlow Lite"},
		"web page":        {[]byte("<!DOCTYPE html><html>"), ErrUnsupported, "web page"},
		"lfs pointer":     {[]byte("version https://git-lfs.github.com/spec/v1\n"), ErrUnsupported, "Git LFS"},
		"noise":           {bytes.Repeat([]byte{0xa5, 0x17, 0x00, 0xff}, 100), ErrBroken, "not a usable ONNX model"},
		"cut whisper":     {modeltest.Whisper(51865)[:90], ErrBroken, "ggml Whisper"},
		"cut onnx":        {modeltest.SileroV5().Bytes()[:60], ErrBroken, "not a usable ONNX model"},
		"silero v3":       {g().Input("input", f32, 1, 512).Input("h0", f32, 2, 1, 64).Input("c0", f32, 2, 1, 64).Output("output", f32, 1, 2, 1).Bytes(), ErrUnsupported, "Silero VAD v3"},
		"silero v4":       {g().Input("input", f32, "b", "s").Input("sr", i64).Input("h", f32, 2, "b", 64).Input("c", f32, 2, "b", 64).Output("output", f32, "b", 1).Output("hn", f32, 2, "b", 64).Output("cn", f32, 2, "b", 64).Bytes(), ErrUnsupported, "Silero VAD v3 or v4: expected silero_vad.onnx"},
		"silero v4 k2":    {g().Input("x", f32, 1, 512).Input("h", f32, 2, 1, 64).Input("c", f32, 2, 1, 64).Output("prob", f32, 1, 1).Output("new_h", f32, 2, 1, 64).Output("new_c", f32, 2, 1, 64).Bytes(), ErrUnsupported, "Silero VAD v3 or v4: expected silero_vad.onnx"},
		"silero sequence": {g().Input("input", f32, "n", 576).Input("h", f32, 1, 1, 128).Input("c", f32, 1, 1, 128).Output("speech_probs", f32, "n").Output("hn", f32, 1, 1, 128).Output("cn", f32, 1, 1, 128).Bytes(), ErrUnsupported, "sequence graph of Silero VAD 6: expected silero_vad.onnx"},
		"streaming":       {g().Input("x", f32, 1, 45, 80).Input("cached_key_0", f32, 1, 1).Output("log_probs", f32, 1, 1, 9).Meta("model_type", "zipformer2_ctc").Bytes(), ErrUnsupported, "offline export"},
		"streaming transducer": {
			modeltest.IcefallStream().Input("cached_key_1", f32, 128, "N", 128).Bytes(), ErrUnsupported, "an icefall transducer in an unknown layout",
		},
		"streaming nemo": {modeltest.NeMoCTC().Input("cache_last_channel", f32, 1, 17, 70, 512).Input("cache_last_time", f32, 1, 17, 512, 8).Bytes(), ErrUnsupported, "streaming NeMo model other than a transducer"},
		"streaming paraformer": {
			g().Input("speech", f32, 1, "T", 560).Input("speech_lengths", i32, 1).Output("enc", f32, 1, "T", 512).
				Output("enc_len", i32, 1).Output("alphas", f32, 1, "T").Meta("model_type", "paraformer").Bytes(), ErrUnsupported, "streaming Paraformer",
		},
		"its decoder": {
			g().Input("enc", f32, 1, "T", 512).Input("enc_len", i32, 1).Input("acoustic_embeds", f32, 1, "U", 512).
				Input("in_cache_0", f32, 1, 512, 10).Output("logits", f32, 1, "U", 9).Bytes(), ErrUnsupported, "part of a streaming Paraformer",
		},
		"gigaam":               {g().Input("wav", f32, 1, "T").Output("text", f32, 1, "T", 34).Meta("is_giga_am", "1").Bytes(), ErrUnsupported, "GigaAM in another layout"},
		"wenet part":           {g().Input("hidden", f32, 1, "T", 256).Output("probs", f32, 1, "T", 9).Bytes(), ErrUnsupported, "CTC layer of WeNet"},
		"fire red":             {fireRed().Meta("model_type", "fire-red-asr-2-ctc").Bytes(), ErrUnsupported, "FireRedASR"},
		"dolphin":              {fireRed().Meta("model_type", "dolphin").Bytes(), ErrUnsupported, "Dolphin"},
		"telespeech":           {fireRed().Meta("model_type", "telespeech_ctc").Bytes(), ErrUnsupported, "TeleSpeech"},
		"canary":               {fireRed().Meta("model_type", "EncDecMultiTaskModel").Bytes(), ErrUnsupported, "Canary"},
		"normalized":           {fireRed().Meta("mean", "1,2").Meta("invstd", "1,2").Bytes(), ErrUnsupported, "mean and deviation"},
		"newcomer":             {fireRed().Meta("model_type", "hummingbird_ctc").Bytes(), ErrUnknown, `model_type "hummingbird_ctc"`},
		"classifier of sounds": {g().Input("input_values", f32, "N", "T").Output("logits", f32, "N", 12).Bytes(), ErrUnknown, "logits float32[?,12]"},
		"newcomer on samples": {
			g().Input("x", f32, "N", "T").Output("logits", f32, "N", "F", 32).Meta("model_type", "hummingbird_ctc").Bytes(),
			ErrUnknown, `model_type "hummingbird_ctc"`,
		},
		"moonshine": {
			g().Input("args_0", f32, "B", "T", 288).Input("args_1", i32, 1).Output("layer_normalization", f32, "B", "T", 288).Bytes(),
			ErrUnsupported, "Moonshine",
		},
		"ten-vad": {
			g().Input("input_1", f32, 1, 3, 41).Input("input_2", f32, 1, 64).Input("input_3", f32, 1, 64).Input("input_6", f32, 1, 64).
				Input("input_7", f32, 1, 64).Output("output_1", f32, 1, 1, 1).Bytes(), ErrUnsupported, "ten-vad",
		},
		"whisper as onnx":   {g().Input("mel", f32, 1, 80, 3000).Output("n_layer_cross_k", f32, 4, 1, 1500, 384).Bytes(), ErrUnsupported, "ggml"},
		"whisper's decoder": {moonshineDecoder(51865).Bytes(), ErrUnsupported, "ggml"},
		"something else":    {g().Input("pixels", f32, 1, 3, 224, 224).Output("class", f32, 1, 1000).Bytes(), ErrUnsupported, "pixels float32[1,3,224,224]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "m.onnx")
			modeltest.Place(t, file, c.data)
			_, err := Recognize(file)
			require.ErrorIs(t, err, c.is)
			require.ErrorIs(t, err, ErrBroken)
			assert.ErrorContains(t, err, file)
			assert.ErrorContains(t, err, c.says)
		})
	}
	_, err := Recognize(t.TempDir())
	require.ErrorIs(t, err, ErrBroken)
	_, err = Recognize(filepath.Join(t.TempDir(), "none.onnx"))
	require.ErrorIs(t, err, ErrMissing)
}

// zipOf returns the beginning of a zip file with an entry.
func zipOf(name string) []byte {
	head := append([]byte("PK\x03\x04"), make([]byte, 26)...)
	head[26] = byte(len(name))
	return append(append(head, name...), "data"...)
}

// parakeetHead returns the beginning of a Parakeet model of whisper.cpp.
func parakeetHead() []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, []int32{ggmlfile.Magic, 8192, 5000, 1024, 8, 24, 128, 1, 512, 8, 256, 9, 640, 2, 5, 10})
	return b.Bytes()
}

// TestForeignFileErrorsNameTheRightCommand checks files of other
// programs that users often have.
func TestForeignFileErrorsNameTheRightCommand(t *testing.T) {
	tar := append([]byte("./model_config.yaml"), make([]byte, 493)...)
	copy(tar[257:], "ustar")
	const pull = "otograph models pull "
	for _, c := range []struct {
		name        string
		data        []byte
		says, helps string
	}{
		{"base.en.pt", zipOf("base.en/data.pkl"), "PyTorch checkpoint of OpenAI", "hf download openai/whisper-base.en"},
		{"small.pt", []byte("\x80\x02}q"), "PyTorch checkpoint of OpenAI", "otograph models import whisper-small"},
		{"pytorch_model.bin", zipOf("archive/data.pkl"), "checkpoint of transformers", "save_pretrained"},
		{"mine.ckpt", zipOf("mine/data.pkl"), "pickled PyTorch checkpoint", "otograph models import FOLDER"},
		{"parakeet.nemo", tar, "NeMo checkpoint", pull + "parakeet-tdt-0.6b-v3-int8"},
		{"model.bin", tar, "NeMo checkpoint", "model.export"},
		{"old.nemo", []byte("\x1f\x8b\x08\x00"), "NeMo checkpoint", pull},
		{"plda.npz", zipOf("mu.npy"), "NumPy archive", pull + "balanced"},
		{"weights.npz", zipOf("encoder.blocks.0.attn.query.weight.npy"), "Whisper model of Apple's MLX", "otograph models import"},
		{"weights.safetensors", []byte("\x60\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{\"format\":\"mlx\"},\"decoder.blocks.0.attn.key.weight\":{\"dtype\":"), "Whisper model of Apple's MLX", "hf download"},
		{"whisper.gguf", []byte("GGUF\x03\x00\x00\x00"), "GGUF", pull + "whisper-base-q8_0"},
		{"ggml-parakeet-tdt-0.6b-v3.bin", parakeetHead(), "Parakeet model of whisper.cpp", pull + "parakeet-tdt-0.6b-v3-int8"},
		{"model.safetensors", []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), "safetensors", "otograph models import FOLDER"},
		{"model.bin", []byte("\x06\x00\x00\x00\x0c\x00WhisperSpec\x00\x03\x00\x00\x00"), "Whisper model of CTranslate2", "otograph models import FOLDER"},
		{"model.bin", []byte("\x06\x00\x00\x00\x10\x00TransformerSpec\x00\x07"), `CTranslate2 model of kind "TransformerSpec"`, "only Whisper"},
		{
			"decoder.onnx", onnxfile.NewGraph().Input("input_ids", i64, "b", "n").Input("encoder_hidden_states", f32, "b", 1500, 512).Output("logits", f32, "b", "n", 9).Bytes(),
			"token by token", "otograph models import FOLDER",
		},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		modeltest.Place(t, file, c.data)
		_, err := Recognize(file)
		require.ErrorIs(t, err, ErrUnsupported, c.name)
		require.ErrorContains(t, err, c.says, c.name)
		assert.ErrorContains(t, err, c.helps, c.name)
	}
}

func TestExternalDataMustStayInTheFolder(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", "sub/w.data", `..\w`} {
		g := modeltest.ZipformerCTC().Constant("w", onnxfile.ExternalTensor(f32, []int64{4}, name, 16))
		_, err := recognize(bytes.NewReader(g.Bytes()), int64(len(g.Bytes())), "m.onnx")
		require.ErrorIs(t, err, ErrBroken, name)
		assert.ErrorContains(t, err, "data file")
	}
}

func FuzzRecognize(f *testing.F) {
	f.Add(modeltest.SileroV5().Bytes())
	f.Add(modeltest.SenseVoice().Bytes())
	f.Add(modeltest.Whisper(51865))
	f.Add([]byte("PK\x03\x04"))
	f.Add(zipOf("archive/data.pkl"))
	f.Add(parakeetHead())
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := recognize(bytes.NewReader(data), int64(len(data)), "m.onnx")
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if _, err := ParseRole(string(found.Role)); err != nil {
			t.Fatal(err)
		}
		if found.Contract != "" {
			if role, ok := ContractRole(found.Contract); !ok || role != found.Role {
				t.Fatalf("contract %q for role %s", found.Contract, found.Role)
			}
		}
	})
}

// TestPublishedModels reads the extra material if it is available.
func TestPublishedModels(t *testing.T) {
	shared := os.Getenv("OTOGRAPH_SHARED")
	if shared == "" {
		t.Skip("OTOGRAPH_SHARED is not set: no published models at hand")
	}
	for name, contract := range map[string]string{"silero_vad.onnx": ContractSileroV5, "yamnet.onnx": ContractYAMNetPatches} {
		found, err := Recognize(filepath.Join(shared, "models", "real", name))
		require.NoError(t, err)
		assert.Equal(t, contract, found.Contract)
	}
}
