/* whisper_vad.c runs only libwhisper's voice activity detection and prints the
 * probability of every 512 samples, one per line, and the time. It shows whether
 * a model from tools/convert/silero_ggml.py is read correctly, and which part of
 * whisper_full's time with vad=MODEL is detection. It is built like
 * whisper_full.c.
 *
 *   whisper_vad MODEL SAMPLES.f32 [threads=4] [plugins=DIR]
 *
 * SAMPLES holds mono float32 at 16 kHz without a header. 4 threads are the library's
 * default, which whisper_full uses regardless of its own number.
 */
#include <ggml-backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <whisper.h>

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void quiet(enum ggml_log_level l, const char *t, void *u) { (void)l, (void)t, (void)u; }

int main(int argc, char **argv)
{
    struct whisper_vad_context_params p = whisper_vad_default_context_params();
    const char *plugins = NULL;
    for (int i = 3; i < argc; i++) {
        sscanf(argv[i], "threads=%d", &p.n_threads);
        if (!strncmp(argv[i], "plugins=", 8)) plugins = argv[i] + 8;
    }
    if (argc < 3) return fprintf(stderr, "usage: whisper_vad MODEL SAMPLES.f32 [threads=4] [plugins=DIR]\n"), 2;
    whisper_log_set(quiet, NULL), ggml_log_set(quiet, NULL);
    plugins ? ggml_backend_load_all_from_path(plugins) : ggml_backend_load_all();

    FILE *f = fopen(argv[2], "rb");
    if (!f) return perror(argv[2]), 1;
    fseek(f, 0, SEEK_END);
    long n = ftell(f) / (long)sizeof(float);
    rewind(f);
    float *pcm = malloc(n * sizeof *pcm);
    if (!pcm || fread(pcm, sizeof *pcm, n, f) != (size_t)n) return fprintf(stderr, "%s: cannot be read\n", argv[2]), 1;
    fclose(f);
    struct whisper_vad_context *vad = whisper_vad_init_from_file_with_params(argv[1], p);
    if (!vad) return fprintf(stderr, "%s: cannot be loaded\n", argv[1]), 1;

    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!whisper_vad_detect_speech(vad, pcm, n)) return fprintf(stderr, "whisper_vad_detect_speech failed\n"), 1;
    wall = seconds(CLOCK_MONOTONIC) - wall, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    for (int i = 0; i < whisper_vad_n_probs(vad); i++) printf("%.6f\n", whisper_vad_probs(vad)[i]);
    fprintf(stderr, "{\"audio_seconds\":%.2f,\"threads\":%d,\"wall_seconds\":%.3f,\"cpu_seconds\":%.3f}\n", n / 16000.0, p.n_threads, wall, cpu);
    whisper_vad_free(vad);
    free(pcm);
    return 0;
}
