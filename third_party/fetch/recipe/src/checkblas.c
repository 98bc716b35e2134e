/* checkblas.c: proves that OpenBLAS and ggml's BLAS plug-in load, and that threads
 * share a product without changing it. usage: checkblas LIBDIR; prints one line. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *lib;
static void *need(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", lib, name);
    void *h = dlopen(path, RTLD_NOW);
    if (!h) printf("%s", dlerror()), exit(1);
    return h;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    lib = argv[1];
    if (!dlopen("libgfortran.so.5", RTLD_NOW)) need("blas/libgfortran.so.5");
    void *open = need("blas/libopenblas.so.0"), *blas = need("blas/libblas.so.3");
    need("blas/libggml-blas.so");
    char *(*core)(void) = (char *(*)(void))dlsym(open, "openblas_get_corename");
    void (*threads)(int) = (void (*)(int))dlsym(blas, "og_blas_threads");
    void (*gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int) =
        (void (*)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int))dlsym(blas, "cblas_sgemm");
    if (!core || !threads || !gemm) return 2;
    enum { M = 1001, N = 96, K = 1100 };
    float *a = malloc(sizeof *a * M * K), *b = malloc(sizeof *b * N * K), *c[2];
    if (!a || !b) return 2;
    for (int i = 0; i < M * K; i++) a[i] = (float)(i * 7919L % 1009) / 1009 - 0.5f;
    for (int i = 0; i < N * K; i++) b[i] = (float)(i * 104729L % 1013) / 1013 - 0.5f;
    for (int t = 0; t < 2; t++) {
        if (!(c[t] = malloc(sizeof **c * M * N))) return 2;
        threads(t ? 3 : 1);
        gemm(101, 111, 112, M, N, K, 1, a, K, b, K, 0, c[t], N);
    }
    for (int i = 0; i < M; i += 83)
        for (int j = 0; j < N; j += 7) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)a[i * K + k] * b[j * K + k];
            double off = sum - c[0][i * N + j];
            if (off > 1e-3 || off < -1e-3) return printf("a product is wrong: %f instead of %f", c[0][i * N + j], sum), 1;
        }
    if (memcmp(c[0], c[1], sizeof **c * M * N)) return printf("threads change a product"), 1;
    printf("blas=%s", core());
    return 0;
}
