/* whisper_full.c measures one call of libwhisper's whisper_full over a whole
 * recording, as in whisper.cpp's command. docs/measurements/standard-tier.md
 * compares the standard tier with it.
 *
 *   whisper_full MODEL SAMPLES.f32 [threads=2] [beam=5] [flash=1] [words=0] [fallback=1] [runs=3] [vad=FILE] [plugins=DIR]
 *
 * SAMPLES holds mono float32 at 16 kHz without a header. Everything else is
 * the library's default: context of 30 s, text of the last window as context,
 * temperature fallbacks. words=1 requests the time of every token, which
 * Otograph always yields; fallback=0 disables decoding again at a higher
 * temperature. vad=FILE enables the library's own voice activity detection with its
 * default options, like the command's --vad --vad-model FILE; FILE is in the
 * library's format, which tools/convert/silero_ggml.py writes. whisper_full loads the
 * detector and runs it over the whole recording.
 */
#include <ggml-backend.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <whisper.h>

static int windows;

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static bool count(struct whisper_context *c, struct whisper_state *s, void *u)
{
    (void)c, (void)s, (void)u;
    windows++;
    return true;
}

static void quiet(enum ggml_log_level l, const char *t, void *u) { (void)l, (void)t, (void)u; }

int main(int argc, char **argv)
{
    int threads = 2, beam = 5, flash = 1, words = 0, fallback = 1, runs = 3;
    const char *plugins = NULL, *vad = NULL;
    for (int i = 3; i < argc; i++) {
        sscanf(argv[i], "threads=%d", &threads), sscanf(argv[i], "beam=%d", &beam), sscanf(argv[i], "flash=%d", &flash);
        sscanf(argv[i], "words=%d", &words), sscanf(argv[i], "fallback=%d", &fallback), sscanf(argv[i], "runs=%d", &runs);
        if (!strncmp(argv[i], "plugins=", 8)) plugins = argv[i] + 8;
        if (!strncmp(argv[i], "vad=", 4)) vad = argv[i] + 4;
    }
    if (argc < 3) return fprintf(stderr, "usage: whisper_full MODEL SAMPLES.f32 [threads=2] [beam=5] [flash=1] [words=0] [fallback=1] [runs=3] [vad=FILE] [plugins=DIR]\n"), 2;
    whisper_log_set(quiet, NULL), ggml_log_set(quiet, NULL);
    plugins ? ggml_backend_load_all_from_path(plugins) : ggml_backend_load_all();

    double start = wall();
    FILE *f = fopen(argv[2], "rb");
    if (!f) return perror(argv[2]), 1;
    fseek(f, 0, SEEK_END);
    long n = ftell(f) / (long)sizeof(float);
    rewind(f);
    float *pcm = malloc(n * sizeof *pcm);
    if (!pcm || fread(pcm, sizeof *pcm, n, f) != (size_t)n) return fprintf(stderr, "%s: cannot be read\n", argv[2]), 1;
    fclose(f);
    struct whisper_context_params cp = whisper_context_default_params();
    cp.use_gpu = false, cp.flash_attn = flash;
    struct whisper_context *ctx = whisper_init_from_file_with_params(argv[1], cp);
    if (!ctx) return fprintf(stderr, "%s: cannot be loaded\n", argv[1]), 1;
    double load = wall() - start;

    for (int k = 0; k < runs; k++) {
        struct whisper_full_params p = whisper_full_default_params(beam > 1 ? WHISPER_SAMPLING_BEAM_SEARCH : WHISPER_SAMPLING_GREEDY);
        p.n_threads = threads, p.language = "en", p.beam_search.beam_size = beam, p.token_timestamps = words;
        p.print_progress = false, p.print_realtime = false, p.encoder_begin_callback = count;
        if (!fallback) p.temperature_inc = 0;
        if (vad) p.vad = true, p.vad_model_path = vad, p.vad_params = whisper_vad_default_params();
        windows = 0;
        double w = wall(), c = cpu();
        if (whisper_full(ctx, p, pcm, n)) return fprintf(stderr, "whisper_full failed\n"), 1;
        struct rusage u;
        w = wall() - w, c = cpu() - c;
        getrusage(RUSAGE_SELF, &u);
        int tokens = 0;
        for (int i = 0; i < whisper_full_n_segments(ctx); i++) tokens += whisper_full_n_tokens(ctx, i);
        double speech = 0;
        for (int i = 0; i < whisper_full_n_vad_segments(ctx); i++)
            speech += (whisper_full_get_vad_segment_t1(ctx, i) - whisper_full_get_vad_segment_t0(ctx, i)) / 100.0;
        printf("{\"audio_seconds\":%.2f,\"speech_seconds\":%.2f,\"wall_seconds\":%.3f,\"cpu_seconds\":%.3f,\"load_seconds\":%.3f,\"encoder_passes\":%d,\"segments\":%d,\"tokens\":%d,\"peak_rss_mib\":%ld}\n",
               n / 16000.0, vad ? speech : n / 16000.0, w, c, load, windows, whisper_full_n_segments(ctx), tokens, u.ru_maxrss / 1024);
        fflush(stdout);
    }
    whisper_free(ctx);
    free(pcm);
    return 0;
}
