/* Declarations of the part of libwhisper 1.9 that the engine uses, under our
 * own names, so that the program builds without whisper.h. A test compares
 * every size and offset with the real header. */
#ifndef OTOGRAPH_LIBWHISPER_H
#define OTOGRAPH_LIBWHISPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct og_context og_context; /* struct whisper_context */
typedef struct og_state og_state;     /* struct whisper_state */

typedef struct og_aheads {
	size_t n_heads;
	const void *heads;
} og_aheads;

typedef struct og_context_params {
	bool use_gpu;
	bool flash_attn;
	int gpu_device;
	bool dtw_token_timestamps;
	int dtw_aheads_preset;
	int dtw_n_top;
	og_aheads dtw_aheads;
	size_t dtw_mem_size;
} og_context_params;

typedef struct og_token_data {
	int32_t id, tid;
	float p, plog, pt, ptsum;
	int64_t t0, t1, t_dtw;
	float vlen;
} og_token_data;

typedef struct og_vad_params {
	float threshold;
	int min_speech_duration_ms;
	int min_silence_duration_ms;
	float max_speech_duration_s;
	int speech_pad_ms;
	float samples_overlap;
} og_vad_params;

typedef void (*og_logits_filter)(og_context *, og_state *, const og_token_data *tokens, int n_tokens, float *logits, void *user);
typedef bool (*og_encoder_begin)(og_context *, og_state *, void *user);
typedef bool (*og_abort)(void *user);
typedef void (*og_log)(int level, const char *text, void *user);

enum { OG_GREEDY = 0, OG_BEAM_SEARCH = 1 };

typedef struct og_full_params {
	int strategy;
	int n_threads, n_max_text_ctx, offset_ms, duration_ms;
	bool translate, no_context, no_timestamps, single_segment;
	bool print_special, print_progress, print_realtime, print_timestamps;
	bool token_timestamps;
	float thold_pt, thold_ptsum;
	int max_len;
	bool split_on_word;
	int max_tokens;
	bool debug_mode;
	int audio_ctx;
	bool tdrz_enable;
	const char *suppress_regex;
	const char *initial_prompt;
	bool carry_initial_prompt;
	const int32_t *prompt_tokens;
	int prompt_n_tokens;
	const char *language;
	bool detect_language;
	bool suppress_blank, suppress_nst;
	float temperature, max_initial_ts, length_penalty;
	float temperature_inc, entropy_thold, logprob_thold, no_speech_thold;
	struct {
		int best_of;
	} greedy;
	struct {
		int beam_size;
		float patience;
	} beam_search;
	void *new_segment_callback, *new_segment_callback_user_data;
	void *progress_callback, *progress_callback_user_data;
	og_encoder_begin encoder_begin_callback;
	void *encoder_begin_callback_user_data;
	og_abort abort_callback;
	void *abort_callback_user_data;
	og_logits_filter logits_filter_callback;
	void *logits_filter_callback_user_data;
	const void *grammar_rules;
	size_t n_grammar_rules, i_start_rule;
	float grammar_penalty;
	bool vad;
	const char *vad_model_path;
	og_vad_params vad_params;
} og_full_params;

/* The rest is our own: the functions that native.go calls. */

/* og_job is the memory that a decode shares with its callbacks, which run on
 * native threads and must not touch Go memory. */
typedef struct og_job og_job;

/* og_request holds a decode's parameters; the caller owns the strings. */
typedef struct og_request {
	const char *language;
	const char *prompt; /* NULL for none */
	int threads, beam, best_of;
	float temperature;
	bool translate;
} og_request;

const char *og_open(const char *dir);
const char *og_version(void);
void og_want_log(bool all);

og_context *og_load_file(const char *path, int gpu);
og_context *og_load_memory(const void *data, size_t size, int gpu);
void og_free(og_context *);
og_state *og_new_state(og_context *);
void og_free_state(og_state *);

og_job *og_new_job(void);
void og_abort_job(og_job *);
bool og_aborted(og_job *);
void og_work(og_job *, int *encodes, int *steps);
void og_free_job(og_job *);
int og_decode(og_context *, og_state *, og_job *, const og_request *, const float *samples, int n_samples);
int og_count_tokens(og_state *);
void og_copy_tokens(og_state *, og_token_data *out);
int og_first(og_context *, og_state *, int threads, const float **logits);
int og_detect(og_context *, og_state *, const float *samples, int n_samples, int threads, float *probabilities);
int og_languages(void);
const char *og_language(int id);
const char *og_token_text(og_context *, int32_t token);
int32_t og_eot(og_context *);
int32_t og_beg(og_context *);
int32_t og_nosp(og_context *);
int og_vocabulary(og_context *);

void *og_ggml(void); /* the library that og_open opened */

#endif
