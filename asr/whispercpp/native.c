//go:build !windows

/* The C half of asr/whispercpp: opens libwhisper at run time and decodes. Nothing
 * here is linked against it; nothing here prints. */
#define _GNU_SOURCE
#include "libwhisper.h"

#include "device.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every function used: result, name, arguments. */
#define WHISPER(X)                                                                                          \
	X(const char *, whisper_version, (void))                                                            \
	X(void, whisper_log_set, (og_log, void *))                                                          \
	X(og_context_params *, whisper_context_default_params_by_ref, (void))                               \
	X(void, whisper_free_context_params, (og_context_params *))                                         \
	X(og_full_params *, whisper_full_default_params_by_ref, (int))                                      \
	X(void, whisper_free_params, (og_full_params *))                                                    \
	X(og_context *, whisper_init_from_file_with_params_no_state, (const char *, og_context_params))     \
	X(og_context *, whisper_init_from_buffer_with_params_no_state, (void *, size_t, og_context_params)) \
	X(void, whisper_free, (og_context *))                                                               \
	X(og_state *, whisper_init_state, (og_context *))                                                   \
	X(void, whisper_free_state, (og_state *))                                                           \
	X(int, whisper_full_with_state, (og_context *, og_state *, og_full_params, const float *, int))     \
	X(int, whisper_full_n_segments_from_state, (og_state *))                                            \
	X(int, whisper_full_n_tokens_from_state, (og_state *, int))                                         \
	X(og_token_data, whisper_full_get_token_data_from_state, (og_state *, int, int))                    \
	X(int, whisper_decode_with_state, (og_context *, og_state *, const int32_t *, int, int, int))       \
	X(float *, whisper_get_logits_from_state, (og_state *))                                             \
	X(int, whisper_pcm_to_mel_with_state, (og_context *, og_state *, const float *, int, int))          \
	X(int, whisper_lang_auto_detect_with_state, (og_context *, og_state *, int, int, float *))          \
	X(int, whisper_lang_max_id, (void))                                                                 \
	X(const char *, whisper_lang_str, (int))                                                            \
	X(const char *, whisper_token_to_str, (og_context *, int32_t))                                      \
	X(int, whisper_n_vocab, (og_context *))                                                             \
	X(int32_t, whisper_token_eot, (og_context *))                                                       \
	X(int32_t, whisper_token_sot, (og_context *))                                                       \
	X(int32_t, whisper_token_nosp, (og_context *))                                                      \
	X(int32_t, whisper_token_beg, (og_context *))
#define GGML(X)                                                 \
	X(void, ggml_backend_load_all_from_path, (const char *)) \
	X(void, ggml_backend_load_all, (void))                   \
	X(void *, ggml_backend_dev_by_type, (int))


#define DECLARE(result, name, arguments) static result(*p_##name) arguments;
WHISPER(DECLARE)
GGML(DECLARE)

struct og_job {
	atomic_int abort;                       /* set to 1 to end the decode */
	atomic_int asked;                       /* after each encoder pass and each decoder step */
	atomic_int encodes;                     /* encoder passes begun */
};

enum { DEVICE_CPU = 0, LOG_WARN = 3, LOG_ERROR = 4 };

static char problem[4096];
static void *ggml; /* the library */
static atomic_bool want_all;

extern void ogNativeLog(int level, char *text); /* native.go */

static void on_log(int level, const char *text, void *user)
{
	(void)user;
	if (level == LOG_ERROR || level == LOG_WARN || atomic_load(&want_all)) ogNativeLog(level, (char *)text);
}

void og_want_log(bool all) { atomic_store(&want_all, all); }

static void *open_one(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", name);
	void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!h) snprintf(problem, sizeof problem, "%s", dlerror());
	return h;
}

/* fits reports whether the library's parameters have the layout of
 * libwhisper.h: its defaults must be at the expected offsets. */
static const char *fits(void)
{
	const char *v = p_whisper_version();
	if (strncmp(v, "1.9.", 4)) {
		snprintf(problem, sizeof problem, "it is version %.64s, version 1.9 is needed", v);
		return problem;
	}
	og_full_params *p = p_whisper_full_default_params_by_ref(OG_BEAM_SEARCH);
	bool ok = p && p->strategy == OG_BEAM_SEARCH && p->n_max_text_ctx == 16384 && p->thold_pt == 0.01f && p->audio_ctx == 0 &&
		  p->suppress_blank && p->max_initial_ts == 1.0f && p->length_penalty == -1.0f && p->temperature_inc == 0.2f &&
		  p->entropy_thold == 2.4f && p->logprob_thold == -1.0f && p->no_speech_thold == 0.6f &&
		  p->beam_search.beam_size == 5 && p->abort_callback == NULL && p->logits_filter_callback == NULL &&
		  p->grammar_penalty == 100.0f && p->vad_params.min_speech_duration_ms == 250 && p->vad_params.samples_overlap == 0.1f;
	if (p) p_whisper_free_params(p);
	og_context_params *c = p_whisper_context_default_params_by_ref();
	ok = ok && c && c->use_gpu && !c->dtw_token_timestamps && c->dtw_n_top == -1 && c->dtw_mem_size == 128u * 1024 * 1024;
	if (c) p_whisper_free_context_params(c);
	return ok ? NULL : "its parameters are laid out differently from those of version 1.9.5";
}

#ifdef __APPLE__
#define LIBRARY(name, version) name "." version ".dylib"
#else
#define LIBRARY(name, version) name ".so." version
#endif

/* og_open opens the libraries in dir ("" is the loader's own search path) and
 * loads ggml's CPU code. Returns NULL on success, else the error. Not safe for
 * concurrent use. The libraries are never closed: ggml keeps threads and
 * tables. */
const char *og_open(const char *dir)
{
	if (*dir) open_one(dir, "libnative_compat.so"); /* present only if an older libstdc++ needs it */
	void *base = open_one(dir, LIBRARY("libggml-base", "0"));
	ggml = base ? open_one(dir, LIBRARY("libggml", "0")) : NULL;
	void *whisper = ggml ? open_one(dir, LIBRARY("libwhisper", "1")) : NULL;
	if (!whisper) return problem;
#define FROM(lib, name)                                                                  \
	if (!(*(void **)&p_##name = dlsym(lib, #name))) {                                \
		snprintf(problem, sizeof problem, "it lacks the function %s", #name); \
		return problem;                                                          \
	}
#define FROM_WHISPER(result, name, arguments) FROM(whisper, name)
#define FROM_GGML(result, name, arguments) FROM(ggml, name)
	WHISPER(FROM_WHISPER)
	GGML(FROM_GGML)
	const char *misfit = fits();
	if (misfit) return misfit;
	p_whisper_log_set(on_log, NULL); /* sets ggml's log as well */
	if (*dir) {
		char path[4096];
		snprintf(path, sizeof path, "%s/ggml", dir);
		p_ggml_backend_load_all_from_path(path);
	}
	if (!p_ggml_backend_dev_by_type(DEVICE_CPU)) p_ggml_backend_load_all();
	/* without a backend the first model load would end the process */
	if (!p_ggml_backend_dev_by_type(DEVICE_CPU)) return "ggml finds no CPU plug-in (libggml-cpu-*.so)";
	return NULL;
}

void *og_ggml(void) { return ggml; }
const char *og_version(void) { return p_whisper_version(); }

/* gpu is the index in og_devices, negative for the CPU. */
static og_context_params context_params(int gpu)
{
	og_context_params *d = p_whisper_context_default_params_by_ref(), p = *d;
	p_whisper_free_context_params(d);
	p.use_gpu = gpu >= 0, p.gpu_device = gpu >= 0 ? gpu : 0;
	p.flash_attn = true;
	return p;
}

og_context *og_load_file(const char *path, int gpu)
{
	og_context *volatile c = NULL;
	og_read_plugins();
	GUARDED(c, NULL, p_whisper_init_from_file_with_params_no_state(path, context_params(gpu)));
	og_plugins_read();
	return c;
}

og_context *og_load_memory(const void *data, size_t size, int gpu)
{
	og_context *volatile c = NULL;
	og_read_plugins();
	GUARDED(c, NULL, p_whisper_init_from_buffer_with_params_no_state((void *)data, size, context_params(gpu)));
	og_plugins_read();
	return c;
}

void og_free(og_context *c) { UNDER_GUARD(p_whisper_free(c)); }

og_state *og_new_state(og_context *c)
{
	og_state *volatile s = NULL;
	og_read_plugins();
	GUARDED(s, NULL, p_whisper_init_state(c));
	og_plugins_read();
	return s;
}
void og_free_state(og_state *s) { UNDER_GUARD(p_whisper_free_state(s)); }

og_job *og_new_job(void) { return calloc(1, sizeof(og_job)); }
void og_abort_job(og_job *j) { atomic_store(&j->abort, 1); }
bool og_aborted(og_job *j) { return atomic_load(&j->abort) != 0; }
void og_work(og_job *j, int *encodes, int *steps)
{
	*encodes = atomic_load(&j->encodes);
	*steps = atomic_load(&j->asked) - *encodes;
}
void og_free_job(og_job *j) { free(j); }

static bool on_abort(void *user)
{
	og_job *j = user;
	atomic_fetch_add(&j->asked, 1);
	return atomic_load(&j->abort);
}

static bool on_encode(og_context *c, og_state *s, void *user)
{
	(void)c, (void)s;
	og_job *j = user;
	atomic_fetch_add(&j->encodes, 1);
	return true;
}

/* og_decode decodes one window of at most 30 s. Returns libwhisper's code: 0, or
 * negative (OG_GAVE_UP, or its own); an aborted decode may give either. */
int og_decode(og_context *c, og_state *s, og_job *j, const og_request *r, const float *samples, int n_samples)
{
	og_full_params *d = p_whisper_full_default_params_by_ref(r->beam > 1 ? OG_BEAM_SEARCH : OG_GREEDY), p = *d;
	p_whisper_free_params(d);
	p.n_threads = r->threads;
	p.no_context = true, p.single_segment = true;
	p.print_progress = p.print_realtime = p.print_timestamps = p.print_special = false;
	p.language = r->language, p.detect_language = false, p.translate = r->translate;
	p.initial_prompt = r->prompt; /* NULL for none */
	p.temperature = r->temperature; /* raised for texts that fail, by the defaults of libwhisper */
	p.greedy.best_of = r->best_of, p.beam_search.beam_size = r->beam;
	/* no-speech is judged in Go: the library reads a probability that only its
	 * own language detection computes */
	p.no_speech_thold = 2;
	p.abort_callback = on_abort, p.abort_callback_user_data = j;
	p.encoder_begin_callback = on_encode, p.encoder_begin_callback_user_data = j;
	volatile int rc = 0;
	GUARDED(rc, OG_GAVE_UP, p_whisper_full_with_state(c, s, p, samples, n_samples));
	return rc;
}

int og_count_tokens(og_state *s)
{
	int n = 0;
	for (int i = 0; i < p_whisper_full_n_segments_from_state(s); i++) n += p_whisper_full_n_tokens_from_state(s, i);
	return n;
}

void og_copy_tokens(og_state *s, og_token_data *out)
{
	for (int i = 0; i < p_whisper_full_n_segments_from_state(s); i++)
		for (int k = 0; k < p_whisper_full_n_tokens_from_state(s, i); k++) *out++ = p_whisper_full_get_token_data_from_state(s, i, k);
}

/* og_first computes the logits after "start of transcript" on the window that
 * the state encoded last. The logits belong to the state. */
int og_first(og_context *c, og_state *s, int threads, const float **logits)
{
	int32_t sot = p_whisper_token_sot(c);
	volatile int rc = 0;
	GUARDED(rc, OG_GAVE_UP, p_whisper_decode_with_state(c, s, &sot, 1, 0, threads));
	if (!rc) *logits = p_whisper_get_logits_from_state(s);
	return rc;
}

static int detect(og_context *c, og_state *s, const float *samples, int n_samples, int threads, float *probabilities)
{
	int rc = p_whisper_pcm_to_mel_with_state(c, s, samples, n_samples, threads);
	if (rc) return rc;
	return p_whisper_lang_auto_detect_with_state(c, s, 0, threads, probabilities);
}

/* og_detect returns the probability of each language. */
int og_detect(og_context *c, og_state *s, const float *samples, int n_samples, int threads, float *probabilities)
{
	volatile int rc = 0;
	GUARDED(rc, OG_GAVE_UP, detect(c, s, samples, n_samples, threads, probabilities));
	return rc;
}

int og_languages(void) { return p_whisper_lang_max_id() + 1; }
const char *og_language(int id) { return p_whisper_lang_str(id); }
const char *og_token_text(og_context *c, int32_t token) { return p_whisper_token_to_str(c, token); }
int32_t og_eot(og_context *c) { return p_whisper_token_eot(c); }
int32_t og_beg(og_context *c) { return p_whisper_token_beg(c); }
int32_t og_nosp(og_context *c) { return p_whisper_token_nosp(c); }
int og_vocabulary(og_context *c) { return p_whisper_n_vocab(c); }
