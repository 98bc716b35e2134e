/* libblas.so.3: the one function that ggml's BLAS plug-in calls, on top of the
 * single-threaded OpenBLAS. A product is computed by the number of threads
 * that the calling thread has set with og_blas_threads, and by none that
 * outlives it: several decoders work side by side, each with its own number. */
#include <pthread.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
enum { MOST_THREADS = 64 };

/* OpenBLAS, column by column */
extern void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const float *alpha,
                   const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc);

static __thread int threads = 1;
void og_blas_threads(int n) { threads = n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : n; }

typedef struct part {
    char ta, tb;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
} part;

static void *compute(void *user)
{
    const part *p = user;
    sgemm_(&p->ta, &p->tb, &p->m, &p->n, &p->k, &p->alpha, p->a, &p->lda, p->b, &p->ldb, &p->beta, p->c, &p->ldc);
    return 0;
}

/* LEAST is the work of a thread that is worth its start (1 ms at 100 GFLOP/s),
 * STEP a multiple of every kernel's tile: where a row stands in a part has no
 * influence on its sums. */
static const double LEAST = 1e8;
enum { STEP = 192 };

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                 float beta, float *c, int ldc)
{
    char fa = ta == NO_TRANS ? 'N' : 'T', fb = tb == NO_TRANS ? 'N' : 'T';
    if (order != ROW_MAJOR) {
        sgemm_(&fa, &fb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
        return;
    }
    /* Row by row, C = A B is C' = B' A' column by column. Threads share the rows of A. */
    double work = 2.0 * m * n * k;
    int parts = threads;
    if (work / LEAST < parts) parts = (int)(work / LEAST);
    if (parts > (m + STEP - 1) / STEP) parts = (m + STEP - 1) / STEP;
    if (parts < 1) parts = 1;
    int rows = ((m + parts - 1) / parts + STEP - 1) / STEP * STEP;
    if (parts == 1) rows = m;
    part p[MOST_THREADS];
    pthread_t id[MOST_THREADS];
    int begun = 0;
    for (int from = 0; from < m; from += rows) {
        part *q = &p[begun];
        *q = (part){fb, fa, n, m - from < rows ? m - from : rows, k, ldb, lda, ldc, alpha, beta,
                    b, a + (ta == NO_TRANS ? (long)from * lda : from), c + (long)from * ldc};
        if (from + rows >= m || pthread_create(&id[begun], 0, compute, q))
            compute(q); /* the last part, and what the system has no thread for */
        else
            begun++;
    }
    while (begun) pthread_join(id[--begun], 0);
}
