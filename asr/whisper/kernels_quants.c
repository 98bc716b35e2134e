//go:build !windows

/* Products of q8_0 weights, blocks of 32 numbers of 8 bits and their scale, with the dot
 * products of AVX-512's VNNI. As ggml's code does, the other side is made such blocks too.
 * The instruction multiplies unsigned by signed bytes: the weights go in with 128 added,
 * and what that is too much is taken off. */
#include "kernels.h"

#ifdef __x86_64__

#include "kernels_turn.h"

#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")))
#define WIDEN(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { BLOCK = 32, BYTES = 34, PAIR = 2 * BLOCK, ROWS = 32, COLUMNS = 6 };

/* pair is two blocks of the other side. */
typedef struct pair {
	int8_t x[PAIR];
	int32_t less[16];  /* what is too much in each block, taken off in its first lane */
	float scale[16];   /* of each lane */
} pair;

_Static_assert(sizeof(pair) == OG_PAIR * sizeof(float), "og_quants_work");

/* lanes puts one number into the first eight lanes, another into the rest. */
INLINE __m512 lanes(float a, float b) { return _mm512_mask_broadcastss_ps(_mm512_set1_ps(a), 0xff00, _mm_set_ss(b)); }

/* quantize makes a pair of 64 numbers. */
TARGET static void quantize(const float *x, pair *to)
{
	float scales[2];
	memset(to->less, 0, sizeof to->less);
	for (int i = 0; i < 2; i++, x += BLOCK) {
		const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
		const float most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(a), _mm512_abs_ps(b)));
		const __m512 by = _mm512_set1_ps(most > 0 ? 127 / most : 0);
		const __m512i p = _mm512_cvtps_epi32(_mm512_mul_ps(a, by)), q = _mm512_cvtps_epi32(_mm512_mul_ps(b, by));
		_mm_storeu_si128((__m128i *)(to->x + i * BLOCK), _mm512_cvtepi32_epi8(p));
		_mm_storeu_si128((__m128i *)(to->x + i * BLOCK + 16), _mm512_cvtepi32_epi8(q));
		to->less[i * 8] = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(p, q));
		scales[i] = most / 127;
	}
	_mm512_storeu_ps(to->scale, lanes(scales[0], scales[1]));
}

/* panel is ROWS rows of weights, upright: for each block four numbers of each row, eight
 * times, and the rows' scales. */
typedef struct panel {
	uint8_t w[BLOCK / 4][ROWS][4];
	uint16_t scale[ROWS];
} panel;

_Static_assert(sizeof(panel) == OG_PANEL * sizeof(float), "og_quants_work");

/* upright fills a panel for each block of up to ROWS rows. */
TARGET static void upright(const uint8_t *w, size_t w_row, int rows, int pairs, panel *to)
{
	for (int i = 0; i < pairs; i++, w += 2 * BYTES, to += 2)
		for (int half = 0; half < ROWS; half += 16) {
			__m512 block[16];
			_Pragma("GCC unroll 16") for (int r = 0; r < 16; r++)
			{
				const uint8_t *p = w + (size_t)(half + r) * w_row, *q = p + BYTES;
				__m512i both = _mm512_setzero_si512();
				to[0].scale[half + r] = to[1].scale[half + r] = 0;
				if (half + r < rows) {
					both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(p + 2))), _mm256_loadu_si256((const __m256i *)(q + 2)), 1);
					memcpy(&to[0].scale[half + r], p, 2), memcpy(&to[1].scale[half + r], q, 2);
				}
				block[r] = _mm512_castsi512_ps(_mm512_xor_si512(both, _mm512_set1_epi8(-128)));
			}
			avx512_turn(block);
			_Pragma("GCC unroll 16") for (int k = 0; k < 16; k++) _mm512_storeu_ps(to[k / 8].w[k % 8][half], block[k]);
		}
}

/* tile multiplies ROWS upright rows by a few columns. */
INLINE void tile(const int columns, const panel *w, const pair *x, int pairs, float *y, size_t y_row)
{
	__m512 sum[COLUMNS][2];
	_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) sum[c][0] = sum[c][1] = _mm512_setzero_ps();
	for (int i = 0; i < 2 * pairs; i++, w++) {
		const int half = i % 2;
		const pair *b = x + i / 2;
		__m512i part[COLUMNS][2];
		_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) part[c][0] = part[c][1] = _mm512_set1_epi32(b[(size_t)c * pairs].less[half * 8]);
		_Pragma("GCC unroll 8") for (int k = 0; k < BLOCK / 4; k++) {
			const __m512i p = _mm512_loadu_si512(w->w[k]), q = _mm512_loadu_si512(w->w[k][16]);
			_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) {
				int32_t four;
				memcpy(&four, b[(size_t)c * pairs].x + half * BLOCK + k * 4, 4);
				const __m512i all = _mm512_set1_epi32(four);
				part[c][0] = _mm512_dpbusd_epi32(part[c][0], p, all), part[c][1] = _mm512_dpbusd_epi32(part[c][1], q, all);
			}
		}
		const __m512 p = WIDEN(w->scale), q = WIDEN(w->scale + 16);
		_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) {
			const __m512 by = _mm512_set1_ps(b[(size_t)c * pairs].scale[half * 8]);
			sum[c][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[c][0]), _mm512_mul_ps(p, by), sum[c][0]);
			sum[c][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(part[c][1]), _mm512_mul_ps(q, by), sum[c][1]);
		}
	}
	_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) _mm512_storeu_ps(y + c * y_row, sum[c][0]), _mm512_storeu_ps(y + c * y_row + 16, sum[c][1]);
}

#define CASE(n) \
	case n: tile(n, w, x, pairs, y, y_row); break;
TARGET static void tiles(int columns, const panel *w, const pair *x, int pairs, float *y, size_t y_row)
{
	switch (columns) {
		CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
	}
}
#undef CASE

bool og_has_quants(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

/* og_quants computes a share of a product: some rows of the weights at a time, upright, for
 * all columns. Even for the few that beams are, this takes half as long as sums along the
 * rows, which need the scales of each block in each sum. */
TARGET void og_quants(const og_part *p)
{
	const og_tensor *w = p->op->src[0], *x = p->op->src[1];
	const int pairs = (int)x->ne[0] / PAIR, columns = (int)x->ne[1];
	const size_t y_row = p->op->nb[1] / 4;
	pair *blocks = (pair *)p->work;
	panel *upper = (panel *)(blocks + (size_t)columns * pairs);
	for (int c = 0; c < columns; c++)
		for (int i = 0; i < pairs; i++) quantize((const float *)((const char *)x->data + (size_t)c * x->nb[1]) + i * PAIR, blocks + (size_t)c * pairs + i);
	for (int64_t first = (int64_t)p->index * ROWS; first < w->ne[1]; first += (int64_t)p->parts * ROWS) {
		const int rows = w->ne[1] - first < ROWS ? (int)(w->ne[1] - first) : ROWS;
		upright((const uint8_t *)w->data + (size_t)first * w->nb[1], w->nb[1], rows, pairs, upper);
		for (int c = 0; c < columns; c += COLUMNS) {
			const int some = columns - c < COLUMNS ? columns - c : COLUMNS;
			float end[COLUMNS * ROWS], *to = (float *)p->op->data + (size_t)c * y_row + first;
			tiles(some, upper, blocks + (size_t)c * pairs, pairs, rows == ROWS ? to : end, rows == ROWS ? y_row : ROWS);
			for (int i = 0; i < some && rows < ROWS; i++) memcpy(to + i * y_row, end + i * ROWS, sizeof *to * (size_t)rows);
		}
	}
}

#endif
