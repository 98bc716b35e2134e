package whispercpp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layouts lists the declarations of libwhisper.h: the name there, the name in
// whisper.h, and the fields.
var layouts = []struct{ ours, theirs, fields string }{
	{"og_context_params", "struct whisper_context_params", `use_gpu flash_attn gpu_device dtw_token_timestamps dtw_aheads_preset dtw_n_top
		dtw_aheads dtw_mem_size`},
	{"og_aheads", "whisper_aheads", "n_heads heads"},
	{"og_token_data", "whisper_token_data", "id tid p plog pt ptsum t0 t1 t_dtw vlen"},
	{"og_vad_params", "whisper_vad_params", `threshold min_speech_duration_ms min_silence_duration_ms max_speech_duration_s
		speech_pad_ms samples_overlap`},
	{"og_full_params", "struct whisper_full_params", `strategy n_threads n_max_text_ctx offset_ms duration_ms translate no_context
		no_timestamps single_segment print_special print_progress print_realtime print_timestamps token_timestamps thold_pt
		thold_ptsum max_len split_on_word max_tokens debug_mode audio_ctx tdrz_enable suppress_regex initial_prompt
		carry_initial_prompt prompt_tokens prompt_n_tokens language detect_language suppress_blank suppress_nst temperature
		max_initial_ts length_penalty temperature_inc entropy_thold logprob_thold no_speech_thold greedy greedy.best_of
		beam_search beam_search.beam_size beam_search.patience new_segment_callback new_segment_callback_user_data
		progress_callback progress_callback_user_data encoder_begin_callback encoder_begin_callback_user_data abort_callback
		abort_callback_user_data logits_filter_callback logits_filter_callback_user_data grammar_rules n_grammar_rules
		i_start_rule grammar_penalty vad vad_model_path vad_params`},
}

// TestDeclarationsMatchTheHeader compiles a program that compares libwhisper.h
// with the library's own header: the sizes, the offset and size of each field,
// and the constants.
func TestDeclarationsMatchTheHeader(t *testing.T) {
	include, err := filepath.Abs("../../third_party/native/include")
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(include, "whisper.h")); err != nil {
		t.Skip("whisper.h is not there: make setup fetches it")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("#include <whisper.h>\n#include \"libwhisper.h\"\n")
	same := func(what, ours, theirs string) {
		fmt.Fprintf(&b, "_Static_assert((%s) == (%s), %q);\n", ours, theirs, what)
	}
	for _, l := range layouts {
		same("size of "+l.ours, "sizeof("+l.ours+")", "sizeof("+l.theirs+")")
		for _, f := range strings.Fields(l.fields) {
			same("place of "+f, "offsetof("+l.ours+", "+f+")", "offsetof("+l.theirs+", "+f+")")
			same("size of "+f, "sizeof((("+l.ours+"*)0)->"+f+")", "sizeof((("+l.theirs+"*)0)->"+f+")")
		}
	}
	same("greedy", "OG_GREEDY", "WHISPER_SAMPLING_GREEDY")
	same("beam search", "OG_BEAM_SEARCH", "WHISPER_SAMPLING_BEAM_SEARCH")
	same("log levels", "3 * 10 + 4", "GGML_LOG_LEVEL_WARN * 10 + GGML_LOG_LEVEL_ERROR")
	program := filepath.Join(t.TempDir(), "layout.c")
	require.NoError(t, os.WriteFile(program, []byte(b.String()), 0o600))
	out, err := exec.Command(cc, "-fsyntax-only", "-I"+include, "-I"+here, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
